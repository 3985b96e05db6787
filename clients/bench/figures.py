"""What one step (so many calls at once) saw, in figures."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from clients.bench.word_lag import WordLags, call_lags, plain_words
from clients.replay.measures import CallMeasures, SegmentHistory, measure, segments_of
from clients.replay.pacing import MS_PER_S
from clients.replay.player import CallTrace
from clients.replay.scoring import Score, compare, pooled_wer, score_call
from clients.types import Notice, NoticeCode

_LOST_MS_TOLERANCE = 10.0
"""The last frame of a call may be a fraction of 10 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFigures:
    """Seconds, unless the name says otherwise; None where there is nothing to measure."""

    num_calls: int
    audio_s: float
    word_lag_p50_s: float | None = None
    word_lag_p95_s: float | None = None
    words_shown: float | None = None
    """Share of the words that were ever shown."""
    finalization_p50_s: float | None = None
    finalization_p95_s: float | None = None
    first_interim_p50_s: float | None = None
    first_interim_p95_s: float | None = None
    interims_per_s_lowest: float | None = None
    """Per second of speech, of the call that has fewest."""
    interims_per_s_median: float | None = None
    wer: float | None = None
    wer_alone: float | None = None
    """Of the same calls one at a time."""
    flicker: float | None = None
    """Interim words taken back per final word."""
    last_interim_difference: float | None = None
    """Words in which the last interim before a final differs from it, per final word."""
    max_send_late_s: float = 0.0
    """How late the load itself was; figures of a late load mean little."""
    losses: Mapping[str, float] = field(default_factory=dict)
    """What was lost, by kind; all zero when nothing was."""
    notices: Mapping[str, int] = field(default_factory=dict)
    """By code."""
    usage: Mapping[str, float | None] = field(default_factory=dict)
    """Machine: CPU seconds and memory of server and load."""

    def as_json(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)


def step_figures(
    traces: Sequence[CallTrace], alone: Mapping[str, CallTrace], usage: Mapping[str, float | None]
) -> StepFigures:
    """Measures a step.

    Args:
        traces: One a stream.
        alone: By recording: the same one played with no other call beside it, with word times.
        usage: What the machine spent.
    """
    measures = [measure(trace) for trace in traces]
    lags = sum((call_lags(trace, alone[trace.call.name]) for trace in traces), WordLags())
    finalization = [value for m in measures for value in m.finalization_s]
    first_interim = [value for m in measures for value in m.first_interim_s]
    rates = [m.num_interims / m.speech_s for m in measures if m.speech_s]
    num_words = len(lags.lags_s) + lags.num_never_shown
    return StepFigures(
        num_calls=len(traces),
        audio_s=sum(trace.sent_ms for trace in traces) / MS_PER_S,
        word_lag_p50_s=_percentile(lags.lags_s, 50),
        word_lag_p95_s=_percentile(lags.lags_s, 95),
        words_shown=len(lags.lags_s) / num_words if num_words else None,
        finalization_p50_s=_percentile(finalization, 50),
        finalization_p95_s=_percentile(finalization, 95),
        first_interim_p50_s=_percentile(first_interim, 50),
        first_interim_p95_s=_percentile(first_interim, 95),
        interims_per_s_lowest=min(rates, default=None),
        interims_per_s_median=_percentile(rates, 50),
        wer=pooled_wer(_scores(traces)),
        wer_alone=pooled_wer(_scores([alone[trace.call.name] for trace in traces])),
        flicker=_flicker(measures),
        last_interim_difference=last_interim_difference(traces),
        max_send_late_s=max((send_late_s(trace) for trace in traces), default=0.0),
        losses=_losses(traces, measures, alone),
        notices=dict(Counter(code.value for trace in traces for code in _notices(trace))),
        usage=usage,
    )


def send_late_s(trace: CallTrace) -> float:
    """Longest time by which a chunk of a call in real time was sent too late."""
    return max((chunk.t_s - chunk.end_ms / MS_PER_S for chunk in trace.sent), default=0.0)


def is_drained(trace: CallTrace) -> bool:
    """Whether every segment of a call has its final and the call ended well."""
    return trace.error is None and not _unfinished(segments_of(trace.events))


def last_interim_difference(traces: Sequence[CallTrace]) -> float | None:
    """Words in which last interims differ from their finals, per word of those finals; None without interims."""
    num_different = num_words = 0
    for segment in (segment for trace in traces for segment in segments_of(trace.events)):
        if segment.final and segment.interims:
            last = " ".join(plain_words(segment.interims[-1].result.transcript))
            final = " ".join(plain_words(segment.final.result.transcript))
            edits = (e for e in compare(final, last) if e.kind != "equal")
            num_different += sum(max(len(e.reference.split()), len(e.hypothesis.split())) for e in edits)
            num_words += len(final.split())
    return num_different / num_words if num_words else None


def _losses(
    traces: Sequence[CallTrace], measures: Sequence[CallMeasures], alone: Mapping[str, CallTrace]
) -> dict[str, float]:
    missing = sum(
        max(0, measure(alone[trace.call.name]).num_finals - m.num_finals)
        for trace, m in zip(traces, measures, strict=True)
    )
    lost_ms = sum(m.lost_ms for m in measures if m.lost_ms > _LOST_MS_TOLERANCE)
    return {
        "calls failed": sum(trace.error is not None for trace in traces),
        "ms of audio lost": lost_ms,
        "segments without final": sum(_unfinished(segments_of(trace.events)) for trace in traces),
        "finals missing": missing,
        "segments not decoded": sum(code is NoticeCode.DECODE_FAILED for trace in traces for code in _notices(trace)),
    }


def _unfinished(segments: Sequence[SegmentHistory]) -> int:
    return sum(segment.final is None for segment in segments)


def _notices(trace: CallTrace) -> list[NoticeCode]:
    return [timed.event.code for timed in trace.events if isinstance(timed.event, Notice)]


def _scores(traces: Sequence[CallTrace]) -> list[Score]:
    return [score for trace in traces for score in score_call(trace)]


def _flicker(measures: Sequence[CallMeasures]) -> float | None:
    num_words = sum(m.num_final_words for m in measures)
    return sum(m.num_taken_back for m in measures) / num_words if num_words else None


def _percentile(values: Sequence[float], percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None
