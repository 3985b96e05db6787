import numpy as np
import pytest

from pipeline.line_level import LineLevel
from pipeline.types import FRAME_SAMPLES
from tests.support.audio import SAMPLE_CALLS, load


def noise(duration_ms, dbfs, seed=1):
    amplitude = 10 ** (dbfs / 20)
    return amplitude * np.random.default_rng(seed).standard_normal(duration_ms * 16).astype(np.float32)


def speech():
    return load(SAMPLE_CALLS / "clip_hello.wav", 16_000)[0]


def hear(line, samples):
    """What the line was after each frame: noisy, at rest."""
    seen = []
    for frame in samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES):
        line.hear(float(np.dot(frame, frame)))
        seen.append((line.is_noisy, line.is_at_rest))
    return np.array(seen)


def with_noise(samples, dbfs):
    return samples + noise(len(samples) // 16 + 1, dbfs)[: len(samples)]


@pytest.mark.parametrize("dbfs", [-75, -65, -56])
def test_a_clean_line_is_never_noisy_also_while_somebody_speaks(dbfs):
    call = np.concatenate([np.zeros(16_000, np.float32), speech(), np.zeros(16_000, np.float32), speech(), speech()])
    assert not hear(LineLevel(), with_noise(call, dbfs))[:, 0].any()


def test_a_call_that_begins_with_speech_is_not_noisy():
    assert not hear(LineLevel(), with_noise(speech(), -65))[:, 0].any()


@pytest.mark.parametrize("dbfs", [-45, -35])
def test_a_noisy_line_is_noticed_within_a_second_from_its_start(dbfs):
    assert hear(LineLevel(), noise(1_000, dbfs))[-1, 0]


def test_noise_that_comes_and_goes_is_followed():
    seen = hear(LineLevel(), np.concatenate([noise(5_000, -65), noise(5_000, -40), noise(5_000, -65)]))[:, 0]
    assert not seen[:700].any()
    assert seen[850:1_000].all()
    assert not seen[1_010:].any()


def test_noise_at_the_limit_does_not_make_it_flutter():
    wavering = np.concatenate([noise(500, -50 + (2 if i % 2 else -2), seed=i) for i in range(40)])
    seen = hear(LineLevel(), wavering)[:, 0]
    assert np.count_nonzero(np.diff(seen.astype(int))) <= 1


@pytest.mark.parametrize("dbfs", [-70, -55, -45, -35])
def test_a_line_rests_on_steady_noise_of_any_level(dbfs):
    at_rest = hear(LineLevel(), noise(10_000, dbfs))[:, 1]
    assert at_rest[400:].mean() > 0.95


@pytest.mark.parametrize("dbfs", [-70, -50])
def test_speech_ends_the_rest_at_once(dbfs):
    line = LineLevel()
    assert hear(line, noise(5_000, dbfs))[-1, 1]
    assert not hear(line, 0.03 * np.ones(FRAME_SAMPLES, np.float32))[-1, 1]
    assert not hear(line, noise(290, dbfs))[:, 1].any()


def test_digital_silence_rests():
    seen = hear(LineLevel(), np.zeros(16_000, np.float32))
    assert not seen[:, 0].any()
    assert seen[40:, 1].all()
