"""Encodes audio: finals in the window the model was trained on, interims short with remembered silence behind.

Whisper ends its text at the silence that fills the window of 30 s. An interim need not pay for encoding it: a clip
of speech followed by silence is encoded once, and the states of that silence are appended at the same positions.
"""

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


def remembered_speech() -> Samples:
    """The clip whose silence is remembered, float32 at 16 kHz."""
    raw = files("pipeline.engines.whisper").joinpath(_CLIP).read_bytes()
    samples: Samples = np.load(BytesIO(raw)).astype(np.float32) / _INT16_RANGE
    return samples


class WindowEncoder:
    """Raw mel frames of several rows to encoder states of 30 s."""

    def __init__(self, encoder: Encoder, log_mel: LogMel, interim_padding_ms: int) -> None:
        self._encoder = encoder
        self._device = encoder.positions.device
        self._dtype = encoder.positions.dtype
        self._padding_frames = interim_padding_ms // _FRAME_MS
        clip = log_mel.frames(torch.from_numpy(remembered_speech()).to(self._device))
        self._memory = self.encode_full([clip])
        # Before this, the memory still holds the speech of the clip.
        self._memory_from_frame = clip.shape[1] + _CLIP_PADDING_FRAMES

    def encode_full(self, frames: Sequence[torch.Tensor]) -> torch.Tensor:
        """Encodes whole windows: `(rows, 1500, width)`."""
        return self._encode(frames, MAX_FRAMES)

    def encode_short(self, frames: Sequence[torch.Tensor]) -> torch.Tensor:
        """Encodes the longest row's audio and some padding, the rest is remembered: `(rows, 1500, width)`."""
        longest = max(row.shape[1] for row in frames)
        wanted = max(longest + self._padding_frames, self._memory_from_frame)
        num_frames = min(MAX_FRAMES, wanted + wanted % 2)  # an even number: two frames make a position
        states = self._encode(frames, num_frames)
        silence = self._memory[:, states.shape[1] :].expand(len(frames), -1, -1)
        return torch.cat([states, silence], dim=1)

    def _encode(self, frames: Sequence[torch.Tensor], num_frames: int) -> torch.Tensor:
        mel = torch.stack([window(row, num_frames) for row in frames]).to(self._dtype)
        states: torch.Tensor = self._encoder(mel)
        return states
