"""Encodes audio: what was said and some silence, with remembered silence behind.

Whisper ends its text at the silence that fills the window of 30 s. Nobody need pay for encoding it each time: a clip
of speech followed by silence is encoded once, and the states of that silence are appended at the same positions.
"""

from collections import defaultdict
from collections.abc import Sequence
from importlib.resources import files
from io import BytesIO

import numpy as np
import torch

from pipeline.engines.whisper.encoder import Encoder
from pipeline.engines.whisper.features import LogMel, window
from pipeline.engines.whisper.spec import MAX_FRAMES
from pipeline.types import Samples

_CLIP = "data/speech_16k.npy"
"""int16 at 16 kHz."""
_INT16_RANGE = 32_768.0
_FRAME_MS = 10
_CLIP_PADDING_FRAMES = 50
"""States this far behind the clip's speech no longer tell what was said: 0.5 s."""
_STEP_FRAMES = 50
"""Lengths are rounded up to half a second, so that rows of similar length are encoded together."""


def remembered_speech() -> Samples:
    """The clip whose silence is remembered, float32 at 16 kHz."""
    raw = files("pipeline.engines.whisper").joinpath(_CLIP).read_bytes()
    samples: Samples = np.load(BytesIO(raw)).astype(np.float32) / _INT16_RANGE
    return samples


class WindowEncoder:
    """Raw mel frames of several rows to encoder states of 30 s.

    How much of a row is encoded depends on its own length alone, not on its batch.
    """

    def __init__(self, encoder: Encoder, log_mel: LogMel) -> None:
        self._encoder = encoder
        self._device = encoder.positions.device
        self._dtype = encoder.positions.dtype
        clip = log_mel.frames(torch.from_numpy(remembered_speech()).to(self._device))
        self._memory = self._encode([clip], MAX_FRAMES)
        # Before this, the memory still holds the speech of the clip.
        self._memory_from_frame = clip.shape[1] + _CLIP_PADDING_FRAMES

    def encode(self, frames: Sequence[torch.Tensor], padding_ms: int) -> torch.Tensor:
        """Encodes each row's audio and `padding_ms` of silence, the rest is remembered: `(rows, 1500, width)`.

        With 30,000 ms the whole window is encoded, as in stock Whisper.
        """
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, row in enumerate(frames):
            num_frames = self._num_frames(row.shape[1] + padding_ms // _FRAME_MS)
            # A CPU gains nothing from encoding rows together, and the last bits of a row would depend on the others.
            groups[num_frames, index if self._device.type == "cpu" else 0].append(index)
        states: dict[int, torch.Tensor] = {}
        for (num_frames, _), indices in groups.items():
            encoded = self._encode([frames[i] for i in indices], num_frames)
            silence = self._memory[:, encoded.shape[1] :].expand(len(indices), -1, -1)
            states.update(zip(indices, torch.cat([encoded, silence], dim=1), strict=True))
        return torch.stack([states[index] for index in range(len(frames))])

    def _num_frames(self, wanted: int) -> int:
        stepped = -(-max(wanted, self._memory_from_frame) // _STEP_FRAMES) * _STEP_FRAMES
        return min(MAX_FRAMES, stepped)

    def _encode(self, frames: Sequence[torch.Tensor], num_frames: int) -> torch.Tensor:
        mel = torch.stack([window(row, num_frames) for row in frames]).to(self._dtype)
        states: torch.Tensor = self._encoder(mel)
        return states
