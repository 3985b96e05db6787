import numpy as np
import pytest

from pipeline import denoising
from pipeline.denoising import DenoisedMix, Denoiser, GatedDenoiser, Mixer
from pipeline.errors import ComponentMissingError
from tests.support.audio import SAMPLE_CALLS, load


def frames(samples):
    return samples[: len(samples) // 160 * 160].reshape(-1, 160)


@pytest.fixture(scope="module")
def speech():
    return load(SAMPLE_CALLS / "clip_hello.wav", 16_000)[0]


def denoise(samples):
    denoiser = Denoiser()
    out = np.concatenate([denoiser.process(frame) for frame in frames(samples)])
    denoiser.close()
    return out


def test_noise_is_suppressed_and_speech_stays(speech):
    noise = 0.02 * np.random.default_rng(3).standard_normal(32_000).astype(np.float32)
    assert np.std(denoise(noise)[16_000:]) < 0.3 * np.std(noise)
    assert np.std(denoise(speech)) > 0.6 * np.std(speech)


def test_stated_delay_is_the_real_one(speech):
    cleaned = denoise(speech)
    original = speech[: len(cleaned)]
    lags = range(0, 600)
    best = max(lags, key=lambda lag: float(np.dot(original[: len(original) - lag], cleaned[lag:])))
    assert best == pytest.approx(Denoiser.delay_ms * 16, abs=4)


def test_mix_lines_both_up():
    mixer, line = Mixer(delay_ms=14), np.arange(1_600, dtype=np.float32)
    late = np.concatenate([np.zeros(224, np.float32), line])[:1_600]
    mixed = np.concatenate([mixer.process(f, d) for f, d in zip(frames(line), frames(late), strict=True)])
    assert np.allclose(mixed, late, rtol=1e-5)


def test_speech_probability_tells_speech_from_silence(speech):
    denoiser = Denoiser()
    during = [(denoiser.process(f), denoiser.speech_probability)[1] for f in frames(speech)]
    after = [(denoiser.process(f), denoiser.speech_probability)[1] for f in frames(np.zeros(16_000, np.float32))]
    assert max(during) > 0.9
    assert max(after[50:]) < 0.2


def test_missing_library_is_an_error_not_a_pass_through(monkeypatch):
    monkeypatch.setattr(denoising, "find_spec", lambda name: None)
    denoising._library.cache_clear()
    try:
        with pytest.raises(ComponentMissingError, match="pyrnnoise"):
            Denoiser()
    finally:
        denoising._library.cache_clear()


def test_close_twice():
    denoiser = Denoiser()
    denoiser.close()
    denoiser.close()


def test_a_closed_gate_passes_audio_untouched(speech, monkeypatch):
    gate = GatedDenoiser()
    monkeypatch.setattr(Denoiser, "process", None)
    assert all(gate.process(frame) is frame for frame in frames(speech))
    gate.close()


def test_an_opened_gate_soon_denoises_as_if_it_had_always_been_open(speech):
    noisy = speech + 0.02 * np.random.default_rng(3).standard_normal(len(speech)).astype(np.float32)
    always, late = GatedDenoiser(), GatedDenoiser()
    always.is_open = True
    for frame in frames(noisy)[:50]:
        always.process(frame)
        late.process(frame)
    late.is_open = True
    reference = np.concatenate([always.process(frame) for frame in frames(noisy)[50:150]])
    found = np.concatenate([late.process(frame) for frame in frames(noisy)[50:150]])
    assert np.std(found - reference) < 0.25 * np.std(reference)
    always.close()
    late.close()


def test_a_gate_that_rested_hears_of_the_rest_before_it_denoises(speech):
    rested, passed = GatedDenoiser(), GatedDenoiser()
    for frame in frames(speech)[:40]:
        rested.rest(frame)
        passed.process(frame)
    rested.is_open = passed.is_open = True
    assert np.array_equal(rested.process(frames(speech)[40]), passed.process(frames(speech)[40]))
    rested.close()
    passed.close()


def test_the_mix_is_made_of_both_sides(speech):
    mix, denoiser, mixer = DenoisedMix(), Denoiser(), Mixer(Denoiser.delay_ms)
    for frame in frames(speech)[:60]:
        heard, denoised = mix.process(frame)
        expected = denoiser.process(frame)
        assert np.array_equal(denoised, expected)
        assert np.array_equal(heard, mixer.process(frame, expected))
    mix.close()
    denoiser.close()
