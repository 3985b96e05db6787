"""Made sounds of the telephone network, with their times known exactly."""

from collections.abc import Iterable, Sequence

import numpy as np

from pipeline.audio.codecs import decode
from pipeline.audio.resampling import Resampler
from pipeline.types import AudioEncoding, Samples
from tests.support.audio import encode_mulaw

RATE_HZ = 8_000
KEYS = {
    key: (low, high)
    for low, row in zip((697, 770, 852, 941), ("123A", "456B", "789C", "*0#D"), strict=True)
    for high, key in zip((1209, 1336, 1477, 1633), row, strict=True)
}


def call_sounds(
    parts: Iterable[tuple[int, Sequence[float]]], amplitude: float = 0.1, snr_db: float | None = None
) -> Samples:
    """Durations in ms with the frequencies that sound in them (none: silence), 8 kHz; noise against one tone."""
    pieces = []
    for duration_ms, frequencies_hz in parts:
        time_s = np.arange(duration_ms * RATE_HZ // 1000) / RATE_HZ
        waves = (amplitude * np.sin(2 * np.pi * hz * time_s) for hz in frequencies_hz)
        pieces.append(sum(waves, np.zeros(len(time_s))))
    sounds = np.concatenate(pieces)
    if snr_db is not None:
        noise = np.random.default_rng(7).standard_normal(len(sounds))
        sounds = sounds + noise * amplitude / np.sqrt(2) * 10 ** (-snr_db / 20)
    return sounds.astype(np.float32)


def keys(digits: str, on_ms: int = 100, off_ms: int = 50) -> list[tuple[int, Sequence[float]]]:
    """Parts of `call_sounds`: these keys, one after the other."""
    return [part for digit in digits for part in ((on_ms, KEYS[digit]), (off_ms, ()))]


def as_heard(samples: Samples) -> Samples:
    """8 kHz audio as the core gets it from a telephone line: through mu-law, at 16 kHz, whole frames."""
    data = encode_mulaw(samples[: len(samples) // 80 * 80])
    resampler = Resampler(RATE_HZ, 16_000)
    frames = decode(data, AudioEncoding.MULAW, 1)[0].reshape(-1, 80)
    return np.concatenate([resampler.process(frame) for frame in frames]) if len(frames) else np.zeros(0, np.float32)
