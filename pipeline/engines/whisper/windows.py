"""Listens to audio: what was said and some silence is encoded, remembered silence follows.

Whisper ends its text at the silence that fills the window of 30 s. Nobody need pay for encoding it each time: a clip
of speech followed by silence is encoded once, and what the decoder sees of that silence is appended at the same
positions. It need not even look at all of it: half a second of silence is one position with the weight of 25.
"""

from collections import defaultdict
from collections.abc import Sequence
from importlib.resources import files
from io import BytesIO

import numpy as np
import torch

from pipeline.engines.whisper.cache import CrossStates, RowStates
from pipeline.engines.whisper.contexts import SegmentContext
from pipeline.engines.whisper.decoder import Decoder
from pipeline.engines.whisper.encoder import Encoder
from pipeline.engines.whisper.features import LogMel, window
from pipeline.engines.whisper.spec import MAX_FRAMES, MAX_POSITIONS
from pipeline.types import Samples

_CLIP = "data/speech_16k.npy"
"""int16 at 16 kHz."""
_INT16_RANGE = 32_768.0
_FRAME_MS = 10
_CLIP_PADDING_FRAMES = 50
"""States this far behind the clip's speech no longer tell what was said: 0.5 s."""
_STEP_FRAMES = 50
"""Lengths are rounded up to half a second, so that rows of similar length are encoded together."""
_POOLED_POSITIONS = _STEP_FRAMES // 2


def remembered_speech() -> Samples:
    """The clip whose silence is remembered, float32 at 16 kHz."""
    raw = files("pipeline.engines.whisper").joinpath(_CLIP).read_bytes()
    samples: Samples = np.load(BytesIO(raw)).astype(np.float32) / _INT16_RANGE
    return samples


class Listener:
    """Raw mel frames of several rows to what the decoder attends to.

    How much of a row is encoded depends on its own length alone, not on its batch.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder, log_mel: LogMel) -> None:
        self._encoder = encoder
        self._decoder = decoder
        self._log_mel = log_mel
        self._device = encoder.positions.device
        self._dtype = encoder.positions.dtype
        clip = log_mel.frames(torch.from_numpy(remembered_speech()).to(self._device))
        self._silence = _pooled(decoder.row_states(self._encode([clip], MAX_FRAMES)[0]))
        # Before this, the memory still holds the speech of the clip.
        self._memory_from_frame = clip.shape[1] + _CLIP_PADDING_FRAMES

    def listen(self, frames: Sequence[torch.Tensor], padding_ms: int) -> CrossStates:
        """Encodes each row's audio and `padding_ms` of silence; the rest of 30 s is remembered.

        With 30,000 ms the whole window is encoded, as in stock Whisper.
        """
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, row in enumerate(frames):
            num_frames = self._num_frames(row.shape[1] + padding_ms // _FRAME_MS)
            # A CPU gains nothing from encoding rows together, and the last bits of a row would depend on the others.
            groups[num_frames, index if self._device.type == "cpu" else 0].append(index)
        rows: dict[int, RowStates] = {}
        for (num_frames, _), indices in groups.items():
            states = self._encode([frames[i] for i in indices], num_frames)
            rows.update({i: self._row(found) for i, found in zip(indices, states, strict=True)})
        return CrossStates([rows[index] for index in range(len(frames))])

    def follow(
        self, context: SegmentContext, samples: torch.Tensor, padding_ms: int, look_ahead_ms: int
    ) -> tuple[RowStates, torch.Tensor]:
        """The same for one row that goes on: only what is not settled yet is encoded.

        Args:
            context: What is known of the row; updated.
            samples: All its audio up to now, float32 at 16 kHz.
            padding_ms: Silence encoded behind it.
            look_ahead_ms: Audio that must lie behind a position before it is settled.

        Returns:
            What the decoder attends to, valid until the next call with this context, and the raw frames.
        """
        if not context.continues_in(samples):
            context.settled, context.frames = 0, None
        if context.frames is None:
            frames = self._log_mel.frames(samples)
        else:
            frames = self._log_mel.extend(context.frames, context.num_samples, samples)
        context.remember(samples, frames)
        row = self._extended(context, frames, self._num_frames(frames.shape[1] + padding_ms // _FRAME_MS))
        settled = (frames.shape[1] - look_ahead_ms // _FRAME_MS) // _STEP_FRAMES * _POOLED_POSITIONS
        context.settled = max(context.settled, settled)
        return row, frames

    def _extended(self, context: SegmentContext, frames: torch.Tensor, num_frames: int) -> RowStates:
        start = context.settled
        states = self._encoder.extend(window(frames, num_frames).to(self._dtype), start, context.encoder)
        new, end = self._decoder.row_states(states), start + len(states)
        silence = self._silence_from(end)
        keys, values = [], []
        for layer in range(len(new.keys)):
            context.cross.write(layer, start, new.keys[layer], new.values[layer])
            key, value = context.cross.write(layer, end, silence.keys[layer], silence.values[layer])
            keys.append(key)
            values.append(value)
        assert silence.weights is not None
        weights = torch.nn.functional.pad(silence.weights, (end, 0))
        return RowStates(keys=keys, values=values, weights=weights)

    def _row(self, states: torch.Tensor) -> RowStates:
        heard = self._decoder.row_states(states)
        num_positions = len(states)
        silence = self._silence_from(num_positions)
        assert silence.weights is not None
        return RowStates(
            keys=[torch.cat(pair, dim=1) for pair in zip(heard.keys, silence.keys, strict=True)],
            values=[torch.cat(pair, dim=1) for pair in zip(heard.values, silence.values, strict=True)],
            weights=torch.nn.functional.pad(silence.weights, (num_positions, 0)),
        )

    def _silence_from(self, position: int) -> RowStates:
        first = position // _POOLED_POSITIONS
        weights = self._silence.weights
        assert weights is not None
        return RowStates(
            keys=[key[:, first:] for key in self._silence.keys],
            values=[value[:, first:] for value in self._silence.values],
            weights=weights[:, :, first:],
        )

    def _num_frames(self, wanted: int) -> int:
        stepped = -(-max(wanted, self._memory_from_frame) // _STEP_FRAMES) * _STEP_FRAMES
        return min(MAX_FRAMES, stepped)

    def _encode(self, frames: Sequence[torch.Tensor], num_frames: int) -> torch.Tensor:
        mel = torch.stack([window(row, num_frames) for row in frames]).to(self._dtype)
        states: torch.Tensor = self._encoder(mel)
        return states


def _pooled(states: RowStates) -> RowStates:
    """Every run of positions as one, with the mean of their keys and values and their number as weight."""
    count = MAX_POSITIONS // _POOLED_POSITIONS
    weight = torch.full((1, 1, count), float(_POOLED_POSITIONS)).log()
    return RowStates(
        keys=[k.view(k.shape[0], count, _POOLED_POSITIONS, -1).mean(2) for k in states.keys],
        values=[v.view(v.shape[0], count, _POOLED_POSITIONS, -1).mean(2) for v in states.values],
        weights=weight.to(states.keys[0]),
    )
