import numpy as np
import pytest

from pipeline.audio.resampling import Resampler

RATES = [(8_000, 16_000), (16_000, 8_000), (16_000, 48_000), (48_000, 16_000), (24_000, 16_000), (32_000, 16_000)]
RATES.append((44_100, 16_000))


def resample(samples, from_hz, to_hz):
    resampler = Resampler(from_hz, to_hz)
    size = from_hz // 100
    return np.concatenate([resampler.process(samples[i : i + size]) for i in range(0, len(samples), size)])


def tone(frequency_hz, rate_hz, delay_ms=0):
    return np.sin(2 * np.pi * frequency_hz * (np.arange(rate_hz) / rate_hz - delay_ms / 1000)).astype(np.float32)


@pytest.mark.parametrize(("from_hz", "to_hz"), RATES)
@pytest.mark.parametrize("frequency_hz", [300, 1_000, 3_400])
def test_the_telephone_band_passes_unchanged_but_for_the_stated_delay(from_hz, to_hz, frequency_hz):
    delay_ms = Resampler(from_hz, to_hz).delay_ms
    error = resample(tone(frequency_hz, from_hz), from_hz, to_hz) - tone(frequency_hz, to_hz, delay_ms)
    assert np.sqrt(np.mean(error[to_hz // 10 :] ** 2)) < 1e-3


@pytest.mark.parametrize(("from_hz", "to_hz", "frequency_hz"), [(16_000, 8_000, 5_000), (48_000, 16_000, 11_000)])
def test_what_the_target_rate_cannot_hold_is_removed(from_hz, to_hz, frequency_hz):
    assert np.abs(resample(tone(frequency_hz, from_hz), from_hz, to_hz)[to_hz // 10 :]).max() < 1e-3


def test_upsampling_adds_no_image():
    spectrum = np.abs(np.fft.rfft(resample(tone(1_000, 8_000), 8_000, 16_000)[1_600:] * np.hanning(14_400)))
    assert spectrum[len(spectrum) // 2 :].max() < 1e-3 * spectrum.max()


def test_live_8k_adds_at_most_5_ms():
    impulse = np.zeros(800, dtype=np.float32)
    impulse[0] = 1
    assert np.argmax(np.abs(resample(impulse, 8_000, 16_000))) <= 5 * 16
    assert Resampler(8_000, 16_000).delay_ms <= 5


def test_same_rate_passes_through():
    frame = tone(440, 16_000)[:160]
    assert Resampler(16_000, 16_000).process(frame) is frame


def test_reset_forgets_the_history():
    resampler, fresh = Resampler(8_000, 16_000), Resampler(8_000, 16_000)
    resampler.process(tone(440, 8_000)[:80])
    resampler.reset()
    frame = tone(1_000, 8_000)[:80]
    assert np.array_equal(resampler.process(frame), fresh.process(frame))
