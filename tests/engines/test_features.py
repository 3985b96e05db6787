"""Features equal those of transformers, whole and in parts."""

import numpy as np
import pytest
import torch
from transformers import WhisperFeatureExtractor

from pipeline.engines.whisper.features import LogMel, mel_filters, window
from tests.engines.support import clip, silence

_CPU = torch.device("cpu")
_NOISE = np.random.default_rng(7).normal(0, 0.1, 480_000).astype(np.float32)


@pytest.mark.parametrize("num_mel_bins", [80, 128])
@pytest.mark.parametrize(
    "samples",
    [clip("order"), clip("number")[:12_345], _NOISE, _NOISE[: 29 * 16_000 + 77], silence(1), _NOISE[:1], _NOISE[:0]],
    ids=["speech", "odd length", "full window", "nearly full window", "zeros", "one sample", "nothing"],
)
def test_window_equals_transformers(num_mel_bins: int, samples: np.ndarray) -> None:
    extractor = WhisperFeatureExtractor(feature_size=num_mel_bins)
    expected = extractor(samples, sampling_rate=16_000, return_tensors="np")["input_features"][0]
    frames = LogMel(num_mel_bins, _CPU).frames(torch.from_numpy(samples))
    np.testing.assert_allclose(window(frames, 3_000).numpy(), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("num_mel_bins", [80, 128])
def test_filters_equal_transformers(num_mel_bins: int) -> None:
    expected = WhisperFeatureExtractor(feature_size=num_mel_bins).mel_filters.T
    np.testing.assert_allclose(mel_filters(num_mel_bins).numpy(), expected, atol=1e-6, rtol=0)


def test_appended_audio_changes_only_the_newest_raw_frames() -> None:
    log_mel = LogMel(80, _CPU)
    samples = torch.from_numpy(_NOISE[:60_000])
    before, after = log_mel.frames(samples[:32_000]), log_mel.frames(samples)
    settled = before.shape[1] - 3
    assert torch.allclose(before[:, :settled], after[:, :settled], atol=1e-5)
    assert not torch.allclose(before, after[:, : before.shape[1]], atol=1e-5)


def test_audio_longer_than_the_window_is_cut() -> None:
    frames = LogMel(80, _CPU).frames(torch.from_numpy(np.tile(_NOISE, 2)))
    assert frames.shape == (80, 3_000)
