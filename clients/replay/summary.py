"""All calls of a run in figures, as a table for people and as JSON for programs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from clients.replay.measures import CallMeasures, measure
from clients.replay.pacing import MS_PER_S
from clients.replay.player import CallTrace
from clients.replay.scoring import Score, pooled_wer, score_call

NUM_WORST = 5
PERCENT = 100
SECONDS_PER_MINUTE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """What is told of many numbers."""

    count: int
    median: float
    p95: float
    maximum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything about a run."""

    traces: tuple[CallTrace, ...] = field(repr=False)
    measures: tuple[CallMeasures, ...] = field(repr=False)
    """One for each trace."""
    scores: tuple[Score, ...] = field(repr=False)
    wall_s: float
    settings: dict[str, Any]
    """What was asked on the command line, and of which server."""

    @property
    def speed(self) -> float:
        """1 is real time, 0 unpaced."""
        return self.traces[0].speed if self.traces else 0.0

    @property
    def failures(self) -> tuple[CallTrace, ...]:
        """Calls that did not end well."""
        return tuple(trace for trace in self.traces if trace.error)

    @property
    def audio_s(self) -> float:
        """Audio sent in all calls."""
        return sum(trace.sent_ms for trace in self.traces) / MS_PER_S

    def all_of(self, pick: Callable[[CallMeasures], Sequence[float]]) -> list[float]:
        """One series of all calls."""
        return [value for measures in self.measures for value in pick(measures)]

    def total(self, pick: Callable[[CallMeasures], float]) -> float:
        """One count over all calls."""
        return sum(pick(measures) for measures in self.measures)


def summarize(traces: list[CallTrace], wall_s: float, settings: dict[str, Any]) -> Summary:
    """Measures and scores every call."""
    return Summary(
        traces=tuple(traces),
        measures=tuple(measure(trace) for trace in traces),
        scores=tuple(score for trace in traces for score in score_call(trace)),
        wall_s=wall_s,
        settings=settings,
    )


def distribution(values: Sequence[float]) -> Distribution | None:
    """None without values."""
    if not values:
        return None
    median, p95, maximum = (float(np.percentile(values, p)) for p in (50, 95, 100))
    return Distribution(count=len(values), median=median, p95=p95, maximum=maximum)


def worst_scores(summary: Summary, count: int) -> list[Score]:
    """The channels with most errors per word, perfect ones left out."""
    wrong = [score for score in summary.scores if score.num_errors]
    return sorted(wrong, key=lambda score: (-score.wer, -score.num_errors, score.name))[:count]


def latencies(summary: Summary) -> dict[str, list[float]]:
    """Every latency series in seconds, by its JSON name; empty lists when the run was not paced."""
    return {
        "first_interim_latency_s": summary.all_of(lambda m: m.first_interim_s),
        "finalization_latency_s": summary.all_of(lambda m: m.finalization_s),
        "server_finalization_latency_s": summary.all_of(lambda m: m.server_latency_s),
        "interim_gap_s": summary.all_of(lambda m: m.interim_gap_s),
    }


def figures(summary: Summary) -> dict[str, Any]:
    """All figures of the run, as JSON holds them; None where there is nothing to measure."""
    num_words = sum(score.num_words for score in summary.scores)
    return {
        "calls": len(summary.traces),
        "calls_failed": len(summary.failures),
        "calls_without_final": sum(1 for m in summary.measures if not m.num_finals),
        "errors_by_status": dict(Counter(t.error.status for t in summary.traces if t.error)),
        "audio_s": summary.audio_s,
        "wall_s": summary.wall_s,
        "times_real_time": _ratio(summary.audio_s, summary.wall_s),
        "wer": pooled_wer(summary.scores),
        "reference_words": num_words,
        "word_errors": sum(score.num_errors for score in summary.scores),
        **{name: _as_json(distribution(values)) for name, values in latencies(summary).items()},
        "finals": int(summary.total(lambda m: m.num_finals)),
        "interims": int(summary.total(lambda m: m.num_interims)),
        "speech_s": summary.total(lambda m: m.speech_s),
        "interims_per_speech_s": _ratio(summary.total(lambda m: m.num_interims), summary.total(lambda m: m.speech_s)),
        "flicker": _ratio(summary.total(lambda m: m.num_taken_back), summary.total(lambda m: m.num_final_words)),
        "stable_violations": int(summary.total(lambda m: m.num_stable_violations)),
        "audio_lost_ms": summary.total(lambda m: m.lost_ms),
    }


def _ratio(numerator: float, denominator: float) -> float | None:
    return numerator / denominator if denominator else None


def _as_json(values: Distribution | None) -> dict[str, float] | None:
    if values is None:
        return None
    return {"count": values.count, "median": values.median, "p95": values.p95, "max": values.maximum}


def latency_note(summary: Summary) -> str:
    """Why there are no latencies; empty when there are some."""
    if summary.speed == 0:
        return "not measured: audio sent as fast as the server takes it has no latency that a caller would see"
    return ""


def figure_rows(summary: Summary) -> list[tuple[str, list[tuple[str, str]]]]:
    """Sections of (label, value) as people read them; the same in the terminal and in the report."""
    values = figures(summary)
    note = latency_note(summary)
    latency_rows = (
        [("latencies", note)]
        if note
        else [
            ("first interim", _spread(values["first_interim_latency_s"])),
            ("finalization", _spread(values["finalization_latency_s"])),
            ("finalization (server's clock)", _spread(values["server_finalization_latency_s"])),
            ("between results of a segment", _spread(values["interim_gap_s"])),
        ]
    )
    return [
        ("Calls", _call_rows(values)),
        ("Accuracy", [("word error rate", _wer_text(values))]),
        ("Latency", latency_rows),
        ("Interims", _interim_rows(values)),
        ("Delivery", _delivery_rows(values)),
    ]


def _call_rows(values: dict[str, Any]) -> list[tuple[str, str]]:
    times = values["times_real_time"]
    pace = f", {times:.1f} x real time" if times else ""
    return [
        ("calls", f"{values['calls']}, {values['calls_failed']} failed"),
        ("audio sent", f"{_minutes(values['audio_s'])} in {_minutes(values['wall_s'])}{pace}"),
    ]


def _wer_text(values: dict[str, Any]) -> str:
    if values["wer"] is None:
        return "no references"
    wrong = f"{values['word_errors']} of {values['reference_words']} words"
    return f"{PERCENT * values['wer']:.2f} %   ({wrong}, numbers normalised)"


def _interim_rows(values: dict[str, Any]) -> list[tuple[str, str]]:
    per_s, flicker = values["interims_per_speech_s"], values["flicker"]
    return [
        ("interims per s of speech", "none" if per_s is None else f"{per_s:.2f}"),
        ("flicker, per final word", "none" if flicker is None else f"{flicker:.2f}"),
        ("stable text that changed", str(values["stable_violations"])),
    ]


def _delivery_rows(values: dict[str, Any]) -> list[tuple[str, str]]:
    errors = ", ".join(f"{count} x {status}" for status, count in values["errors_by_status"].items())
    return [
        ("audio lost (not acknowledged)", f"{values['audio_lost_ms']:.0f} ms"),
        ("calls without a final", str(values["calls_without_final"])),
        ("errors", errors or "none"),
    ]


def _spread(values: dict[str, float] | None) -> str:
    if values is None:
        return "none"
    return f"{values['median']:.2f} s median   {values['p95']:.2f} s p95   n={values['count']:.0f}"


def _minutes(seconds: float) -> str:
    if seconds < SECONDS_PER_MINUTE:
        return f"{seconds:.1f} s"
    return f"{seconds / SECONDS_PER_MINUTE:.1f} min"


def summary_table(summary: Summary) -> RenderableType:
    """The run for a terminal."""
    table = Table(show_header=False, box=None, padding=(0, 2), title="Replay", title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for section, rows in figure_rows(summary):
        for index, (label, value) in enumerate(rows):
            table.add_row("" if index else section, label, value)
    parts: list[RenderableType] = [Text(), table]
    if worst := worst_scores(summary, NUM_WORST):
        parts += [Text(), _worst_table(worst)]
    parts += [Text(f"failed: {t.call.name}: {t.error}", style="red") for t in summary.failures[:NUM_WORST]]
    return Group(*parts)


def _worst_table(scores: list[Score]) -> Table:
    table = Table(box=None, padding=(0, 2), title="Most errors per word", title_justify="left", header_style="dim")
    for name in ("recording", "channel", "WER", "errors / words"):
        table.add_column(name, overflow="fold", justify="left" if name == "recording" else "right")
    for score in scores:
        counts = f"{score.num_errors} / {score.num_words}"
        table.add_row(score.name, str(score.channel_tag), f"{PERCENT * score.wer:.1f} %", counts)
    return table
