"""Gates on constructed texts."""

import pytest

from pipeline.engines.whisper.gates import (
    GateThresholds,
    Verdict,
    compression_ratio,
    confidence,
    is_looping,
    judge,
    loop_cut,
)
from pipeline.errors import InvalidConfigError

_LIMITS = GateThresholds()
_WORDS = tuple(range(1000, 1030))


def _judge(text: str = "some quite ordinary words", **changes: float) -> Verdict:
    values = {"mean_log_prob": -0.3, "no_speech_prob": 0.1} | changes
    return judge(_LIMITS, text, _WORDS, **values)


def test_ordinary_text_passes() -> None:
    assert _judge() is Verdict.ACCEPTED


def test_unlikely_text_is_doubtful() -> None:
    assert _judge(mean_log_prob=-1.01) is Verdict.DOUBTFUL
    assert _judge(mean_log_prob=float("nan")) is Verdict.DOUBTFUL
    assert _judge(mean_log_prob=-0.99) is Verdict.ACCEPTED


def test_no_speech_needs_both_signs() -> None:
    assert _judge(mean_log_prob=-0.4, no_speech_prob=0.7) is Verdict.NO_SPEECH
    assert _judge(mean_log_prob=-0.3, no_speech_prob=0.7) is Verdict.ACCEPTED
    assert _judge(mean_log_prob=-1.2, no_speech_prob=0.5) is Verdict.DOUBTFUL


def test_text_that_compresses_too_well_is_doubtful() -> None:
    loop = "and I am going to " * 20
    assert compression_ratio(loop) > 2.4
    assert _judge(loop) is Verdict.DOUBTFUL
    assert compression_ratio("") == 0.0


@pytest.mark.parametrize("period", [1, 2, 5, 12])
def test_loops_are_found_and_cut_to_one(period: int) -> None:
    said = (*range(50), *range(100, 100 + period))
    looping = said + tuple(range(100, 100 + period)) * 30
    assert is_looping(looping)
    assert looping[: loop_cut(looping)] == said


@pytest.mark.parametrize(
    "tokens",
    [(), (7,) * 4, (*_WORDS, 7, 7, 7), (1, 2) * 4, (*_WORDS, *_WORDS, *_WORDS)],
    ids=["nothing", "a digit four times", "no no no", "bye-bye", "a sentence three times"],
)
def test_real_repeats_are_kept(tokens: tuple[int, ...]) -> None:
    assert not is_looping(tokens)
    assert loop_cut(tokens) == len(tokens)


def test_confidence_is_a_rounded_probability() -> None:
    assert confidence(0.0) == 1.0
    assert confidence(1e-9) == 1.0
    assert confidence(-0.5) == 0.61


def test_thresholds_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"gates\.max_no_speech_prob: 1\.5"):
        GateThresholds(max_no_speech_prob=1.5)
