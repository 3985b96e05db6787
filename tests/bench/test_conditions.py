"""Lines are as bad as they are said to be."""

import numpy as np
import pytest

from pipeline.benchmarks.conditions import LEVELS_DBFS, SNRS_DB, at_level, conditions, level_dbfs
from tests.engines.support import clip


def lines():
    voices = [clip("order"), clip("hold"), clip("address")]
    recorded = {"hum": np.sin(np.arange(16_000) / 40).astype(np.float32)}
    return {(c.kind, c.degree): c.make for c in conditions(voices, recorded)}


def speech():
    return np.pad(clip("order"), (8_000, 8_000))


def made(make, seed=1):
    return make(speech(), np.random.default_rng(seed))


@pytest.mark.parametrize("kind", ["white noise", "babble", "car", "hum"])
@pytest.mark.parametrize("snr_db", SNRS_DB)
def test_noise_is_as_loud_as_its_ratio_says(kind, snr_db):
    found = lines()
    clean = made(found["clean", ""])
    noise = made(found[kind, f"{snr_db} dB"]) - clean
    noise_dbfs = 10 * np.log10(float(np.mean(np.square(noise, dtype=np.float64))))
    assert level_dbfs(clean) - noise_dbfs == pytest.approx(snr_db, abs=0.1)


@pytest.mark.parametrize("level", LEVELS_DBFS)
def test_levels_are_those_of_active_speech(level):
    assert level_dbfs(made(lines()["level", f"{level} dBFS"])) == pytest.approx(level, abs=0.1)


def test_a_clipped_line_clips_and_the_same_seed_gives_the_same_noise():
    found = lines()
    assert np.mean(np.abs(made(found["clipped", "12 dB"])) > 1) > 0.02
    assert np.array_equal(made(found["babble", "5 dB"]), made(found["babble", "5 dB"]))
    assert not np.array_equal(made(found["babble", "5 dB"]), made(found["babble", "5 dB"], seed=2))


def test_a_car_is_low():
    found = lines()
    noise = made(found["car", "5 dB"]) - made(found["clean", ""])
    spectrum = np.abs(np.fft.rfft(noise)) ** 2
    assert spectrum[: len(spectrum) // 20].sum() > 0.7 * spectrum.sum()
    assert at_level(noise, -30.0).dtype == np.float32
