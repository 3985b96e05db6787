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


def test_where_somebody_surely_speaks_an_unsure_short_word_passes() -> None:
    def verdict(speech_score: float | None, **values: float) -> Verdict:
        return judge(_LIMITS.given(speech_score), "two", (734,), **values)

    quiet_word = {"mean_log_prob": -1.5, "no_speech_prob": 0.6}
    assert [verdict(score, **quiet_word) for score in (None, 0.5, 0.6)] == [Verdict.NO_SPEECH] * 3
    assert verdict(0.95, **quiet_word) is Verdict.ACCEPTED
    # What music and tones give is not believed however sure voice activity is.
    assert verdict(1.0, mean_log_prob=-0.9, no_speech_prob=0.8) is Verdict.NO_SPEECH
    assert verdict(1.0, mean_log_prob=-2.1, no_speech_prob=0.1) is Verdict.DOUBTFUL


def test_evidence_never_makes_the_gates_stricter() -> None:
    lenient = GateThresholds(max_no_speech_prob=0.9, min_mean_log_prob=-3.0, max_doubtful_no_speech_prob=0.8)
    given = lenient.given(1.0)
    assert (given.max_no_speech_prob, given.min_mean_log_prob) == (0.9, -3.0)
    assert given.max_doubtful_no_speech_prob == 0.8


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


def test_a_loop_can_be_said_as_often_as_wanted() -> None:
    said, looping = (1, 2, 3), (1, 2, 3) + (7, 8) * 30
    assert looping[: loop_cut(looping, 4)] == said + (7, 8) * 4
    assert loop_cut(looping, 99) == len(looping)


def test_where_the_audio_repeats_itself_so_may_the_text() -> None:
    text, tokens = "no, " * 30, (645, 11) * 30
    verdicts = [judge(_LIMITS, text, tokens, -0.1, 0.1, may_loop=may_loop) for may_loop in (False, True)]
    assert verdicts == [Verdict.DOUBTFUL, Verdict.ACCEPTED]


def test_confidence_is_a_rounded_probability() -> None:
    assert confidence(0.0) == 1.0
    assert confidence(1e-9) == 1.0
    assert confidence(-0.5) == 0.61


def test_thresholds_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"gates\.max_no_speech_prob: 1\.5"):
        GateThresholds(max_no_speech_prob=1.5)
