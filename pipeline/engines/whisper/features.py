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
        window_samples = MAX_FRAMES * HOP_SAMPLES
        samples = samples[:window_samples]
        # Frame t is centred on sample t * HOP_SAMPLES and reaches half an FFT to both sides.
        num_frames = min(MAX_FRAMES, math.ceil((len(samples) + FFT_SAMPLES // 2) / HOP_SAMPLES))
        padded_samples = min(window_samples, max((num_frames + 2) * HOP_SAMPLES, FFT_SAMPLES))
        padded = torch.nn.functional.pad(samples, (0, padded_samples - len(samples)))
        spectrum = torch.stft(padded, FFT_SAMPLES, HOP_SAMPLES, window=self._taper, return_complex=True)
        power = spectrum[:, :num_frames].abs().square()
        return (self._filters @ power).clamp(min=_FLOOR).log10()


def window(frames: torch.Tensor, num_frames: int) -> torch.Tensor:
    """The model's input: raw frames followed by silence, clamped and scaled, shape `(num_mel_bins, num_frames)`.

    `num_frames` is at least the number of raw frames.
    """
    padded = torch.nn.functional.pad(frames, (0, num_frames - frames.shape[1]), value=SILENCE_LOG10)
    floor = padded.max() - _DYNAMIC_RANGE_LOG10
    return (torch.maximum(padded, floor) + 4.0) / 4.0
