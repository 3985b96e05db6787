"""Listens to audio: what was said and some silence is encoded, remembered silence follows."""

from collections import defaultdict
from collections.abc import Sequence

import torch

from pipeline.engines.whisper.cache import CrossStates, RowStates
from pipeline.engines.whisper.contexts import SegmentContext
from pipeline.engines.whisper.decoder import Decoder
from pipeline.engines.whisper.encoder import Encoder
from pipeline.engines.whisper.features import LogMel, window
from pipeline.engines.whisper.silence import SilenceMemory, remembered_speech
from pipeline.engines.whisper.spec import MAX_FRAMES

_FRAME_MS = 10
_CLIP_PADDING_FRAMES = 50
"""States this far behind the clip's speech no longer tell what was said: 0.5 s."""
_GROUPED_FRAMES = 50
"""Where rows are encoded together, lengths are rounded up to half a second."""


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
        clip_window = decoder.row_states(self._encode([clip], MAX_FRAMES)[0])
        self._silence = SilenceMemory(clip_window, (clip.shape[1] + _CLIP_PADDING_FRAMES) // 2)
        # A CPU gains nothing from encoding rows together, and the last bits of a row would depend on the others.
        self._encodes_together = self._device.type != "cpu"

    def listen(self, frames: Sequence[torch.Tensor], padding_ms: int) -> CrossStates:
        """Encodes each row's audio and `padding_ms` of silence; the rest of 30 s is remembered.

        With 30,000 ms the whole window is encoded, as in stock Whisper.
        """
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, row in enumerate(frames):
            num_frames = self._num_frames(row.shape[1] + padding_ms // _FRAME_MS)
            groups[num_frames, 0 if self._encodes_together else index].append(index)
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
            context.restart()
        if context.frames is None:
            frames = self._log_mel.frames(samples)
        else:
            frames = self._log_mel.extend(context.frames, context.num_samples, samples)
        context.remember(samples, frames)
        row = self._extended(context, frames, self._num_frames(frames.shape[1] + padding_ms // _FRAME_MS))
        settled = (frames.shape[1] - look_ahead_ms // _FRAME_MS) // 2
        context.settled = max(context.settled, settled)
        return row, frames

    def _extended(self, context: SegmentContext, frames: torch.Tensor, num_frames: int) -> RowStates:
        start = context.settled
        states = self._encoder.extend(window(frames, num_frames).to(self._dtype), start, context.encoder)
        new, end = self._decoder.row_states(states), start + len(states)
        silence = self._silence.behind(end)
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
        silence = self._silence.behind(num_positions)
        assert silence.weights is not None
        return RowStates(
            keys=[torch.cat(pair, dim=1) for pair in zip(heard.keys, silence.keys, strict=True)],
            values=[torch.cat(pair, dim=1) for pair in zip(heard.values, silence.values, strict=True)],
            weights=torch.nn.functional.pad(silence.weights, (num_positions, 0)),
        )

    def _num_frames(self, wanted: int) -> int:
        step = _GROUPED_FRAMES if self._encodes_together else 2
        return min(MAX_FRAMES, -(-max(wanted, 2 * self._silence.first_silent) // step) * step)

    def _encode(self, frames: Sequence[torch.Tensor], num_frames: int) -> torch.Tensor:
        mel = torch.stack([window(row, num_frames) for row in frames]).to(self._dtype)
        states: torch.Tensor = self._encoder(mel)
        return states
