"""What telephone lines carry beside speech: recordings at several levels, mixed and re-pitched, and made silence."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soxr

from pipeline.types import Samples
from tests.support.audio import load, manifest

RATE_HZ = 8_000
KINDS = ("noise", "music", "dtmf")
SPOKEN = ("noise/baresip__error.wav", "noise/baresip__ring.wav")
"""Filed as noise, but a voice says "the call failed" and "the phone is ringing"."""
LEVELS_DB = (0.0, -15.0, -30.0)
_PITCHES = (0.8, 0.9, 1.0, 1.0, 1.1, 1.25)
_PIECES = 6


def recordings(folder: Path) -> dict[str, Samples]:
    """Everything without speech, by path, at 8 kHz."""
    rows = [str(row["path"]) for row in manifest(folder) if row["kind"] in KINDS]
    return {path: load(folder / path, RATE_HZ).mean(0) for path in rows if path not in SPOKEN}


def at_level(samples: Samples, level_db: float) -> Samples:
    """Louder or quieter, clipped where it would not fit."""
    return np.clip(samples * 10 ** (level_db / 20), -1, 1).astype(np.float32)


def mixtures(sounds: list[Samples], minutes: float, seed: int) -> Iterator[Samples]:
    """Calls of half a minute or more of random pieces: levels, pitches, two sounds at once, hiss, pauses."""
    random = np.random.default_rng(seed)
    total_s = 0.0
    while total_s < 60 * minutes:
        parts = [part for _ in range(_PIECES) for part in (_piece(sounds, random), _pause(random))]
        total_s += sum(map(len, parts)) / RATE_HZ
        yield np.concatenate(parts)


def quiet_lines(minutes: float, seed: int) -> Iterator[Samples]:
    """Minutes of digital silence and of comfort noise, flat and coloured, steady and coming and going."""
    random = np.random.default_rng(seed)
    for minute in range(round(minutes)):
        noise = random.normal(0, 10 ** (random.uniform(-75, -35) / 20), 60 * RATE_HZ)
        if minute % 4 == 0:
            noise[:] = 0
        if minute % 4 == 1:
            noise = np.convolve(noise, np.ones(6) / 6**0.5, "same")
        if minute % 4 == 2:
            noise *= np.repeat(random.random(60) < 0.5, RATE_HZ)
        yield noise.astype(np.float32)


def _piece(sounds: list[Samples], random: np.random.Generator) -> Samples:
    piece = _excerpt(sounds, random)
    pitch = float(random.choice(_PITCHES))
    if pitch != 1.0:
        piece = soxr.resample(piece, RATE_HZ, RATE_HZ * pitch)
    piece = piece * 10 ** (random.choice(LEVELS_DB) / 20)
    if random.random() < 0.3:
        other = _excerpt(sounds, random)[: len(piece)]
        piece[: len(other)] += other * 10 ** (random.choice(LEVELS_DB) / 20)
    if random.random() < 0.3:
        piece = piece + random.normal(0, 10 ** (random.uniform(-70, -35) / 20), len(piece))
    return np.clip(piece, -1, 1).astype(np.float32)


def _excerpt(sounds: list[Samples], random: np.random.Generator) -> Samples:
    sound = sounds[random.integers(len(sounds))]
    length = int(random.uniform(3, 20) * RATE_HZ)
    start = int(random.integers(max(1, len(sound) - length)))
    return sound[start : start + length].copy()


def _pause(random: np.random.Generator) -> Samples:
    return np.zeros(int(random.uniform(0.1, 3) * RATE_HZ), dtype=np.float32)
