"""The telephone line: band limits, levels, noise floor, and G.711 files."""

from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

Samples = NDArray[np.float32]
"""Mono audio, shape `(num_samples,)`, full scale 1."""

SAMPLE_RATE_HZ = 8_000
PASS_BAND_HZ = (300.0, 3_400.0)
BAND_EDGE_HZ = 120.0
"""Width of the cosine flanks outside the pass band."""
SPEECH_LEVEL_DBFS = -20.0
NOISE_LEVEL_DBFS = -65.0
AUDIBLE_DBFS = -50.0
"""Quieter speech sounds than this count as silence; 15 dB above the noise floor."""
PEAK_LIMIT = 0.95

_LEVEL_WINDOW = 20 * SAMPLE_RATE_HZ // 1000
_EDGE_WINDOW = 5 * SAMPLE_RATE_HZ // 1000
_FADE_SAMPLES = 2 * SAMPLE_RATE_HZ // 1000
_FILTER_PAD = 100 * SAMPLE_RATE_HZ // 1000
_ACTIVE_BELOW_LOUDEST_DB = 25.0


def gain(level_db: float) -> float:
    """Amplitude factor of a level in dB."""
    return float(10.0 ** (level_db / 20.0))


def band_limit(samples: Samples) -> Samples:
    """Keeps the telephone band; zero phase, so that nothing moves in time."""
    padded = np.pad(samples.astype(np.float64), _FILTER_PAD)
    spectrum = np.fft.rfft(padded)
    spectrum *= _band_response(np.fft.rfftfreq(len(padded), 1.0 / SAMPLE_RATE_HZ))
    return np.fft.irfft(spectrum, len(padded))[_FILTER_PAD:-_FILTER_PAD].astype(np.float32)


def _band_response(frequencies_hz: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = PASS_BAND_HZ
    outside_hz = np.maximum(np.maximum(low - frequencies_hz, frequencies_hz - high), 0.0)
    return 0.5 + 0.5 * np.cos(np.pi * np.minimum(outside_hz / BAND_EDGE_HZ, 1.0))


def window_levels_dbfs(samples: Samples, window_samples: int) -> NDArray[np.float64]:
    """RMS level of every whole window, shape `(num_samples // window_samples,)`."""
    num_windows = len(samples) // window_samples
    windows = samples[: num_windows * window_samples].astype(np.float64).reshape(num_windows, window_samples)
    return 10.0 * np.log10(np.mean(windows**2, axis=1) + 1e-12)


def active_level_dbfs(samples: Samples) -> float:
    """RMS level of the speech alone: windows far below the loudest one do not count."""
    levels = window_levels_dbfs(samples, _LEVEL_WINDOW)
    active = levels[levels > levels.max() - _ACTIVE_BELOW_LOUDEST_DB]
    return float(10.0 * np.log10(np.mean(10.0 ** (active / 10.0))))


def set_level(samples: Samples, level_dbfs: float) -> Samples:
    """Scales speech to an active level; rare peaks above the limit are bent, not cut."""
    scaled = samples * gain(level_dbfs - active_level_dbfs(samples))
    return (PEAK_LIMIT * np.tanh(scaled / PEAK_LIMIT)).astype(np.float32)


def trim_to_audible(samples: Samples) -> Samples:
    """Cuts what cannot be heard at both ends, so that times are those of audible speech."""
    power = np.convolve(samples.astype(np.float64) ** 2, np.full(_EDGE_WINDOW, 1.0 / _EDGE_WINDOW), mode="same")
    audible = np.flatnonzero(power > gain(AUDIBLE_DBFS) ** 2)
    if not len(audible):
        raise ValueError("nothing audible in the spoken audio; give the voice some words")
    trimmed = samples[audible[0] : audible[-1] + 1].copy()
    fade = np.linspace(0.0, 1.0, min(_FADE_SAMPLES, len(trimmed)), dtype=np.float32)
    trimmed[: len(fade)] *= fade
    trimmed[len(trimmed) - len(fade) :] *= fade[::-1]
    return trimmed


def line_noise(num_samples: int, rng: np.random.Generator) -> Samples:
    """The faint noise of an open line."""
    noise = band_limit(rng.standard_normal(num_samples).astype(np.float32))
    rms = np.sqrt(np.mean(noise.astype(np.float64) ** 2))
    return (noise * gain(NOISE_LEVEL_DBFS) / rms).astype(np.float32)


def write_wav(path: Path, channels: NDArray[np.float32], encoding: str) -> None:
    """Writes an 8 kHz WAV file.

    Args:
        path: Where to.
        channels: Shape `(num_channels, num_samples)`.
        encoding: "ULAW" (WAVE_FORMAT_MULAW) or "PCM_16".
    """
    soundfile.write(path, channels.T, SAMPLE_RATE_HZ, format="WAV", subtype=encoding)
