"""A step in figures, and whether they are good enough."""

from dataclasses import replace

import pytest

from clients.bench.figures import StepFigures, step_figures
from clients.bench.objective import Objective, breaches, judge
from clients.errors import RecognitionError
from clients.types import Notice, NoticeCode
from tests.bench.calls import alone_trace, live_trace
from tests.clients.traces import interim, trace

ALONE = {"a.wav": alone_trace()}
USAGE = {"wall_s": 5.0, "server_cpu_s": 1.0}
GOOD = StepFigures(
    num_calls=4,
    audio_s=20.0,
    word_lag_p95_s=1.0,
    finalization_p95_s=0.7,
    interims_per_s_lowest=1.5,
    wer=0.02,
    wer_alone=0.02,
    losses={"calls failed": 0, "ms of audio lost": 0.0},
)


def test_figures_of_a_good_step():
    figures = step_figures([live_trace(), live_trace(index=1)], ALONE, USAGE)
    assert figures.num_calls == 2
    assert figures.audio_s == pytest.approx(10.0)
    assert figures.finalization_p95_s == pytest.approx(0.6)
    assert figures.interims_per_s_lowest == pytest.approx(2 / 1.5)
    assert figures.wer == figures.wer_alone == 0
    assert figures.words_shown == 1.0
    assert figures.last_interim_difference == pytest.approx(3 / 5)  # one word wrong, two missing
    assert not any(figures.losses.values())
    assert breaches(figures, Objective()) == ()


def test_the_call_with_fewest_interims_counts():
    silent = trace([], name="a.wav")
    spoken = live_trace(index=1)
    scarce = replace(spoken, events=spoken.events[1:])
    figures = step_figures([live_trace(), scarce, silent], ALONE, USAGE)
    assert figures.interims_per_s_lowest == pytest.approx(1 / 1.5)


def test_losses_are_told_by_kind():
    failed = live_trace(error=RecognitionError("UNAVAILABLE", "gone"))
    unfinished = trace([(1.0, interim("Hello", end_ms=1000))], name="a.wav", acknowledged_ms=1_000)
    notice = Notice(code=NoticeCode.DECODE_FAILED, message="segment 3")
    undecoded = live_trace()
    undecoded = replace(undecoded, events=(*undecoded.events, replace(undecoded.events[0], event=notice)))
    figures = step_figures([failed, unfinished, undecoded], ALONE, USAGE)
    assert figures.losses == {
        "calls failed": 1,
        "ms of audio lost": pytest.approx(4_000),
        "segments without final": 1,
        "finals missing": 1,
        "segments not decoded": 1,
    }
    assert figures.notices == {"DECODE_FAILED": 1}
    assert len(breaches(figures, Objective())) >= 5


def test_words_that_are_wrong_among_other_calls_show():
    figures = step_figures([live_trace(text="Hello there, who are you?")], ALONE, USAGE)
    assert figures.wer == pytest.approx(0.2)
    assert "20.00 points above" in " ".join(breaches(figures, Objective()))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"word_lag_p95_s": 1.51}, "p95 word lag 1.51 s, bound 1.50 s"),
        ({"word_lag_p95_s": None}, "p95 word lag unknown"),
        ({"finalization_p95_s": 0.95}, "p95 finalization 0.95 s, bound 0.90 s"),
        ({"interims_per_s_lowest": 0.9}, "0.90 interims a second"),
        ({"interims_per_s_lowest": None}, "interims unknown"),
        ({"wer": 0.024}, "0.40 points above"),
        ({"losses": {"calls failed": 2}}, "2 calls failed"),
    ],
)
def test_each_bound_breaks_alone(change, reason):
    broken = breaches(replace(GOOD, **change), Objective())
    assert len(broken) == 1
    assert broken[0].startswith(reason) or reason in broken[0]


def test_good_figures_break_nothing():
    assert breaches(GOOD, Objective()) == ()
    assert breaches(replace(GOOD, wer=None, wer_alone=None), Objective()) == ()


def step(num_calls, *reasons):
    return replace(GOOD, num_calls=num_calls), tuple(reasons)


def test_verdict_is_the_highest_count_up_to_which_all_held():
    verdict = judge([step(1), step(4), step(8, "too late"), step(12)])
    assert (verdict.calls_held, verdict.broken_at, verdict.reasons) == (4, 8, ("too late",))
    assert judge([step(1), step(4)]).calls_held == 4
    assert judge([step(1), step(4)]).broken_at is None
    assert judge([step(1, "too late")]).calls_held == 0
