import numpy as np
import pytest

from pipeline.config import VadMode
from pipeline.vad import create_vad
from tests.support.audio import SAMPLE_CALLS, load


def scores(mode, samples):
    vad = create_vad(mode)
    return np.array([vad.process(f) for f in samples[: len(samples) // 160 * 160].reshape(-1, 160)])


@pytest.fixture(scope="module")
def speech():
    return load(SAMPLE_CALLS / "clip_hello.wav", 16_000)[0]


@pytest.mark.parametrize("mode", VadMode)
def test_speech_scores_high_and_silence_low(mode, speech):
    silence = 1e-4 * np.random.default_rng(5).standard_normal(16_000).astype(np.float32)
    found = scores(mode, np.concatenate([silence, speech, silence]))
    assert 0 <= found.min() <= found.max() <= 1
    assert np.percentile(found[110 : 100 + len(speech) // 160 - 10], 70) > 0.6
    assert found[40:98].max() < 0.35
    assert found[-40:].max() < 0.35


@pytest.mark.parametrize("mode", [VadMode.COMBINED, VadMode.SILERO])
def test_a_steady_tone_is_not_speech(mode):
    tone = 0.3 * np.sin(2 * np.pi * 425 * np.arange(32_000) / 16_000).astype(np.float32)
    assert scores(mode, tone)[60:].max() < 0.5


@pytest.mark.parametrize("mode", VadMode)
def test_detectors_share_nothing(mode, speech):
    alone = scores(mode, speech)
    one, two = create_vad(mode), create_vad(mode)
    noise = np.random.default_rng(7).standard_normal(160).astype(np.float32) / 10
    together = []
    for frame in speech[: len(speech) // 160 * 160].reshape(-1, 160):
        two.process(noise)
        together.append(one.process(frame))
    assert np.array_equal(alone, together)
