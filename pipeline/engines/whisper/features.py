"""Log-mel features, equal to those of transformers' WhisperFeatureExtractor.

Raw frames are kept apart from clamping and scaling, which depend on the whole window: when audio is appended,
only the newest raw frames change.
"""

import math

import torch

from pipeline.engines.whisper.spec import MAX_FRAMES
from pipeline.types import CORE_SAMPLE_RATE_HZ

FFT_SAMPLES = 400
"""25 ms at 16 kHz."""
HOP_SAMPLES = 160
"""10 ms at 16 kHz: one frame."""
_REACH_SAMPLES = FFT_SAMPLES // 2
_WINDOW_SAMPLES = MAX_FRAMES * HOP_SAMPLES
_MIRRORED_FRAMES = 2
"""Frames at the beginning that reach before it."""
_FLOOR = 1e-10
SILENCE_LOG10 = math.log10(_FLOOR)
"""Raw value of every bin of a frame without sound."""
_DYNAMIC_RANGE_LOG10 = 8.0
_MAX_HZ = 8_000.0

# Slaney's mel scale: linear up to 1 kHz, logarithmic above.
_LINEAR_HZ_PER_MEL = 200.0 / 3.0
_BREAK_HZ = 1_000.0
_BREAK_MEL = _BREAK_HZ / _LINEAR_HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27.0


def _hz_to_mel(hz: float) -> float:
    return hz / _LINEAR_HZ_PER_MEL if hz < _BREAK_HZ else _BREAK_MEL + math.log(hz / _BREAK_HZ) / _LOG_STEP


def _mel_to_hz(mel: torch.Tensor) -> torch.Tensor:
    above = _BREAK_HZ * torch.exp(_LOG_STEP * (mel - _BREAK_MEL))
    return torch.where(mel < _BREAK_MEL, mel * _LINEAR_HZ_PER_MEL, above)


def mel_filters(num_mel_bins: int) -> torch.Tensor:
    """Triangular filters of equal area, shape `(num_mel_bins, FFT_SAMPLES // 2 + 1)`, float32."""
    bins_hz = torch.linspace(0.0, CORE_SAMPLE_RATE_HZ / 2, FFT_SAMPLES // 2 + 1, dtype=torch.float64)
    mels = torch.linspace(0.0, _hz_to_mel(_MAX_HZ), num_mel_bins + 2, dtype=torch.float64)
    edges_hz = _mel_to_hz(mels)
    widths_hz = edges_hz.diff()
    slopes = edges_hz[:, None] - bins_hz[None, :]
    rising = -slopes[:-2] / widths_hz[:-1, None]
    falling = slopes[2:] / widths_hz[1:, None]
    area = 2.0 / (edges_hz[2:] - edges_hz[:-2])
    return (torch.minimum(rising, falling).clamp(min=0.0) * area[:, None]).float()


class LogMel:
    """Turns samples into raw log-mel frames and those into the model's windows."""

    def __init__(self, num_mel_bins: int, device: torch.device) -> None:
        self.num_mel_bins = num_mel_bins
        self._filters = mel_filters(num_mel_bins).to(device)
        self._taper = torch.hann_window(FFT_SAMPLES, device=device)

    def frames(self, samples: torch.Tensor) -> torch.Tensor:
        """Raw frames: log10 of the mel energies, shape `(num_mel_bins, num_frames)`.

        Covers every frame that the samples reach, at most a window; the frames behind are all `SILENCE_LOG10`.
        `samples` is float32 at 16 kHz, shape `(num_samples,)`.
        """
        samples = samples[:_WINDOW_SAMPLES]
        num_frames = _frames_reached(len(samples))
        padded_samples = min(_WINDOW_SAMPLES, max((num_frames + 2) * HOP_SAMPLES, FFT_SAMPLES))
        padded = torch.nn.functional.pad(samples, (0, padded_samples - len(samples)))
        return self._raw(padded, centred=True)[:, :num_frames]

    def extend(self, frames: torch.Tensor, num_samples: int, samples: torch.Tensor) -> torch.Tensor:
        """The frames of audio that has grown; only those that the new samples reach are computed.

        Args:
            frames: Of the first `num_samples`.
            num_samples: How many there were.
            samples: All samples up to now.
        """
        samples = samples[:_WINDOW_SAMPLES]
        num_kept = min(frames.shape[1], (min(num_samples, len(samples)) - _REACH_SAMPLES) // HOP_SAMPLES + 1)
        num_frames = _frames_reached(len(samples))
        if num_kept < _MIRRORED_FRAMES or num_frames == MAX_FRAMES:
            return self.frames(samples)  # the edges of the window are mirrored, not silent
        start = num_kept * HOP_SAMPLES - _REACH_SAMPLES
        needed = (num_frames - 1) * HOP_SAMPLES + _REACH_SAMPLES
        piece = torch.nn.functional.pad(samples[start:], (0, needed - len(samples)))
        return torch.cat((frames[:, :num_kept], self._raw(piece, centred=False)), dim=1)

    def _raw(self, samples: torch.Tensor, *, centred: bool) -> torch.Tensor:
        spectrum = torch.stft(
            samples, FFT_SAMPLES, HOP_SAMPLES, window=self._taper, center=centred, return_complex=True
        )
        return (self._filters @ spectrum.abs().square()).clamp(min=_FLOOR).log10()


def _frames_reached(num_samples: int) -> int:
    """Frame t is centred on sample t * HOP_SAMPLES and reaches half an FFT to both sides."""
    return min(MAX_FRAMES, math.ceil((num_samples + _REACH_SAMPLES) / HOP_SAMPLES))


def window(frames: torch.Tensor, num_frames: int) -> torch.Tensor:
    """The model's input: raw frames followed by silence, clamped and scaled, shape `(num_mel_bins, num_frames)`.

    `num_frames` is at least the number of raw frames.
    """
    padded = torch.nn.functional.pad(frames, (0, num_frames - frames.shape[1]), value=SILENCE_LOG10)
    floor = padded.max() - _DYNAMIC_RANGE_LOG10
    return (torch.maximum(padded, floor) + 4.0) / 4.0
