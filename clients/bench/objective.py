"""What counts as good enough, and how many calls a server held by that."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from clients.bench.figures import StepFigures

_PERCENT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Bounds that every step must keep."""

    word_lag_p95_s: float = 1.5
    """End of a word's audio to the first time it is shown."""
    finalization_p95_s: float = 0.9
    """End of speech to the final."""
    min_interims_per_s: float = 1.0
    """Interims per second of speech, of the call that has fewest."""
    wer_excess_points: float = 0.3
    """Word error rate above that of the same calls one at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How many calls held."""

    calls_held: int
    """0 when not even the smallest step did."""
    broken_at: int | None = None
    """First number of calls that did not hold; None when all steps held."""
    reasons: tuple[str, ...] = field(default=())
    """Why it did not."""


def breaches(figures: StepFigures, objective: Objective) -> tuple[str, ...]:
    """Everything in which a step misses the objective, in words."""
    found = [
        _above("p95 word lag", figures.word_lag_p95_s, objective.word_lag_p95_s),
        _above("p95 finalization", figures.finalization_p95_s, objective.finalization_p95_s),
        _below_interims(figures, objective),
        _above_wer(figures, objective),
        *(f"{count:g} {what}" for what, count in figures.losses.items() if count),
    ]
    return tuple(text for text in found if text)


def judge(steps: Sequence[tuple[StepFigures, tuple[str, ...]]]) -> Verdict:
    """The highest number of calls up to which every step held; steps with their breaches, in any order."""
    held = 0
    for figures, broken in sorted(steps, key=lambda step: step[0].num_calls):
        if broken:
            return Verdict(calls_held=held, broken_at=figures.num_calls, reasons=broken)
        held = figures.num_calls
    return Verdict(calls_held=held)


def _above(what: str, value: float | None, bound: float) -> str:
    if value is None:
        return f"{what} unknown: nothing to measure it by"
    return f"{what} {value:.2f} s, bound {bound:.2f} s" if value > bound else ""


def _below_interims(figures: StepFigures, objective: Objective) -> str:
    rate, bound = figures.interims_per_s_lowest, objective.min_interims_per_s
    if rate is None:
        return "interims unknown: nobody spoke"
    return f"{rate:.2f} interims a second in one call, bound {bound:.2f}" if rate < bound else ""


def _above_wer(figures: StepFigures, objective: Objective) -> str:
    if figures.wer is None or figures.wer_alone is None:
        return ""
    excess = _PERCENT * (figures.wer - figures.wer_alone)
    bound = objective.wer_excess_points
    return f"word error rate {excess:.2f} points above one call alone, bound {bound:.2f}" if excess > bound else ""
