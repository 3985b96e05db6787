"""What a line carries beside speech: ringback, keys (ITU-T Q.23), a beep, hold music."""

import numpy as np
from numpy.typing import NDArray

from sample_calls import line
from sample_calls.line import SAMPLE_RATE_HZ, Samples

MUSIC_LEVEL_DBFS = -34.0
TONE_LEVEL_DBFS = -24.0
"""Of each of the frequencies."""
KEY_SAMPLES = 100 * SAMPLE_RATE_HZ // 1000
KEY_PAUSE_SAMPLES = 80 * SAMPLE_RATE_HZ // 1000
_KEY_ROWS_HZ = (697.0, 770.0, 852.0, 941.0)
_KEY_COLUMNS_HZ = (1209.0, 1336.0, 1477.0, 1633.0)
_KEYPAD = ("123A", "456B", "789C", "*0#D")
_RINGBACK_HZ = (440.0, 480.0)
_RING_S, _RING_PERIOD_S = 2.0, 6.0
"""North America (ITU-T E.180 supplement 2)."""
_BEEP_HZ = 1000.0
_RAMP_SAMPLES = 2 * SAMPLE_RATE_HZ // 1000

_CHORD_S = 2.0
# Roots and thirds low, so that the harmonics fill the band: C, A minor, F, G.
_CHORDS_HZ = (
    (261.63, 329.63, 392.00, 523.25),
    (220.00, 261.63, 329.63, 440.00),
    (174.61, 261.63, 349.23, 440.00),
    (196.00, 246.94, 293.66, 392.00),
)


def make(kind: str, num_samples: int) -> Samples:
    """A sound of `SOUND_KINDS` but keys."""
    if kind == "music":
        return hold_music(num_samples)
    if kind == "ringback":
        return _ringback(num_samples)
    if kind == "beep":
        return _tones((_BEEP_HZ,), num_samples)
    return np.zeros(num_samples, np.float32)


def key_tone(key: str) -> Samples:
    """The two frequencies of a key for 100 ms."""
    row = next(n for n, keys in enumerate(_KEYPAD) if key in keys)
    return _tones((_KEY_ROWS_HZ[row], _KEY_COLUMNS_HZ[_KEYPAD[row].index(key)]), KEY_SAMPLES)


def _tones(frequencies_hz: tuple[float, ...], num_samples: int) -> Samples:
    time_s = np.arange(num_samples) / SAMPLE_RATE_HZ
    tones = sum(np.sin(2 * np.pi * hz * time_s) for hz in frequencies_hz) * np.sqrt(2.0) * line.gain(TONE_LEVEL_DBFS)
    ramp = np.minimum(1.0, np.minimum(np.arange(num_samples), np.arange(num_samples)[::-1]) / _RAMP_SAMPLES)
    return (tones * ramp).astype(np.float32)


def _ringback(num_samples: int) -> Samples:
    """Rings for two seconds of every six, as long as there is time; the last ring ends it."""
    rings = np.zeros(num_samples, np.float32)
    ring = _tones(_RINGBACK_HZ, int(_RING_S * SAMPLE_RATE_HZ))
    for start in range(0, num_samples, int(_RING_PERIOD_S * SAMPLE_RATE_HZ)):
        rings[start : start + len(ring)] = ring[: num_samples - start]
    return rings


def hold_music(num_samples: int) -> Samples:
    """Slow broken chords, band limited, at the level of hold music."""
    music = np.zeros(num_samples)
    chord_samples = int(_CHORD_S * SAMPLE_RATE_HZ)
    for k, start in enumerate(range(0, num_samples, chord_samples)):
        chord = _broken_chord(_CHORDS_HZ[k % len(_CHORDS_HZ)], chord_samples)
        music[start : start + chord_samples] += chord[: num_samples - start]
    return line.trim_to_audible(line.set_level(line.band_limit(music.astype(np.float32)), MUSIC_LEVEL_DBFS))


def _broken_chord(notes_hz: tuple[float, ...], num_samples: int) -> NDArray[np.float64]:
    chord = np.zeros(num_samples)
    step = num_samples // (2 * len(notes_hz))
    for k, note_hz in enumerate(notes_hz + notes_hz[::-1]):
        time_s = np.arange(num_samples - k * step) / SAMPLE_RATE_HZ
        decay = np.exp(-time_s / 0.6) * np.minimum(time_s / 0.01, 1.0)
        partials = sum(np.sin(2.0 * np.pi * note_hz * n * time_s) / n**1.5 for n in range(1, 5))
        chord[k * step :] += decay * partials
    # The last notes are still ringing where the next chord begins.
    chord[-SAMPLE_RATE_HZ // 50 :] *= np.linspace(1.0, 0.0, SAMPLE_RATE_HZ // 50)
    return chord
