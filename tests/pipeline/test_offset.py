"""A DC offset is taken out; a line without one passes to the bit."""

import numpy as np
import pytest

from pipeline.offset import OffsetRemover
from pipeline.types import FRAME_SAMPLES
from tests.support.audio import bursts


def through(samples):
    remover = OffsetRemover()
    frames = samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    return np.concatenate([remover.remove(frame) for frame in frames])


def speech_like():
    return bursts([(500, 0.0), (1_500, 0.1), (500, 0.0), (1_500, 0.1)], rate_hz=16_000)


@pytest.mark.parametrize("offset", [0.02, 0.1, -0.2])
def test_an_offset_is_gone_after_a_tenth_of_a_second(offset):
    clean = speech_like()
    cleaned = through(np.clip(clean + np.float32(offset), -1, 1).astype(np.float32))
    rest = cleaned - clean[: len(cleaned)]
    assert abs(float(rest[2_000:].mean())) < 2e-3
    assert np.abs(rest[2_000:]).max() < 8e-3
    assert np.abs(np.diff(rest[1_600:])).max() < 0.02, "a step is a click"


def test_a_line_without_an_offset_is_untouched():
    clean = speech_like()
    assert np.array_equal(through(clean), clean[: len(clean) // FRAME_SAMPLES * FRAME_SAMPLES])


def test_an_offset_that_goes_away_is_followed():
    clean = speech_like()
    moved = clean.copy()
    moved[:24_000] += np.float32(0.1)
    cleaned = through(np.concatenate([moved, clean, clean, clean]))
    assert abs(float(cleaned[-16_000:].mean())) < 4e-3
