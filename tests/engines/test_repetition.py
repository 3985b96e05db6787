"""What is said over and over is written as often as it is said; a loop of the decoder is not."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.features import LogMel
from pipeline.engines.whisper.repetition import count_repeats
from pipeline.types import CORE_SAMPLE_RATE_HZ, Samples
from tests.engines.support import CLIP_TEXTS, batch, clip, request, text
from tests.support.audio import SAMPLE_CALLS, load

_HELLO_S = (0.30, 0.62)
_GAP_SAMPLES = CORE_SAMPLE_RATE_HZ // 6


def hello(times: int) -> Samples:
    """The word, cut out of a sentence, so many times; no two quite as loud, nor the gaps as long."""
    random = np.random.default_rng(times)
    start, end = (int(s * CORE_SAMPLE_RATE_HZ) for s in _HELLO_S)
    word = load(SAMPLE_CALLS / "clip_hello.wav", CORE_SAMPLE_RATE_HZ)[0, start:end]
    said = [
        np.pad(word * random.uniform(0.7, 1.0), (0, int(_GAP_SAMPLES * random.uniform(0.9, 1.1)))) for _ in range(times)
    ]
    return np.concatenate(said).astype(np.float32)


def repeats_in(samples: Samples) -> int:
    return count_repeats(LogMel(80, torch.device("cpu")).frames(torch.from_numpy(samples.copy())))


@pytest.mark.parametrize("times", [5, 12, 25])
def test_repeats_are_counted(times: int) -> None:
    assert repeats_in(hello(times)) == pytest.approx(times, abs=1 + times // 12)


@pytest.mark.parametrize("name", CLIP_TEXTS)
def test_speech_does_not_repeat_itself(name: str) -> None:
    assert repeats_in(clip(name)) == 0


@pytest.mark.parametrize("seconds", [0.0, 0.2, 3.0])
def test_neither_does_silence(seconds: float) -> None:
    assert repeats_in(np.zeros(int(seconds * CORE_SAMPLE_RATE_HZ), np.float32)) == 0


@pytest.mark.parametrize("times", [4, 14, 20])
def test_a_word_said_over_and_over_is_written_so_often(tiny: WhisperEngine, times: int) -> None:
    result = tiny.transcribe(batch(replace(request(hello(times)), speech_score=0.95)))[0]
    assert text(result).lower().count("hello") == pytest.approx(times, abs=2)
