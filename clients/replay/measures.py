"""What one played call tells about the server: latencies, interims, flicker, kept promises.

First-interim latency counts from when the chunk with the first speech sample was sent; finalization latency from when
the last speech sample was due, both to the receipt of the result. Where speech begins and ends is taken from the
reference's utterances, and where it has none from the server's speech activity events.
"""

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from clients.replay.manifest import Utterance
from clients.replay.pacing import MS_PER_S
from clients.replay.player import CallTrace, TimedEvent
from clients.types import ActivityKind, EndReason, Result, SpeechActivity

TOLERANCE_MS = 500
"""How far an utterance may begin before its segment, or end after it, and still be all of it."""
MIN_OVERLAP_MS = 100
"""Less of an utterance than this inside a segment is somebody else's pre-roll."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedResult:
    """A result and when it came."""

    t_s: float
    result: Result


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentHistory:
    """All results of one segment, in the order they came."""

    results: tuple[TimedResult, ...]

    @property
    def last(self) -> Result:
        """The newest: the final, once there is one."""
        return self.results[-1].result

    @property
    def interims(self) -> tuple[TimedResult, ...]:
        """All but the final."""
        return tuple(timed for timed in self.results if not timed.result.is_final)

    @property
    def final(self) -> TimedResult | None:
        """The final, if it came."""
        return self.results[-1] if self.last.is_final else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMeasures:
    """Figures of one call. Latencies are empty when it was not played in real time or slower."""

    first_interim_s: tuple[float, ...] = ()
    """One for each segment with interims."""
    finalization_s: tuple[float, ...] = ()
    """One for each segment whose speech ended."""
    server_latency_s: tuple[float, ...] = ()
    """Finalization latency as the server measured it."""
    interim_gap_s: tuple[float, ...] = ()
    """Between two results of the same segment."""
    num_interims: int = 0
    speech_s: float = 0.0
    num_taken_back: int = 0
    """Interim words that a later result of the segment no longer had."""
    num_final_words: int = 0
    num_finals: int = 0
    num_stable_violations: int = 0
    """Interims whose stable text changed afterwards."""
    lost_ms: float = 0.0
    """Audio sent but not acknowledged at the end of the call."""
    languages: tuple[str, ...] = field(default=())


def segments_of(events: Iterable[TimedEvent]) -> list[SegmentHistory]:
    """Results by their segment, segments in order of their first result."""
    grouped: dict[str, list[TimedResult]] = {}
    for timed in events:
        if isinstance(timed.event, Result):
            entry = TimedResult(t_s=timed.t_s, result=timed.event)
            grouped.setdefault(timed.event.result_id, []).append(entry)
    return [SegmentHistory(results=tuple(results)) for results in grouped.values()]


def measure(trace: CallTrace) -> CallMeasures:
    """All figures of one call."""
    segments = segments_of(trace.events)
    spans = [speech_span(segment, trace) for segment in segments]
    finals = [segment.final.result for segment in segments if segment.final]
    has_latencies = trace.speed > 0
    server_latencies = [final.latency_ms / MS_PER_S for final in finals if final.latency_ms is not None]
    return CallMeasures(
        first_interim_s=tuple(_first_interims(trace, segments, spans)) if has_latencies else (),
        finalization_s=tuple(_finalizations(trace, segments, spans)) if has_latencies else (),
        server_latency_s=tuple(server_latencies) if has_latencies else (),
        interim_gap_s=tuple(_gaps(segments)) if has_latencies else (),
        num_interims=sum(len(segment.interims) for segment in segments),
        speech_s=sum(_speech_s(segment, span) for segment, span in zip(segments, spans, strict=True)),
        num_taken_back=sum(taken_back(segment) for segment in segments),
        num_final_words=sum(len(_words(final.transcript)) for final in finals),
        num_finals=len(finals),
        num_stable_violations=sum(stable_violations(segment) for segment in segments),
        lost_ms=max(0.0, trace.sent_ms - trace.acknowledged_ms),
        languages=tuple(sorted({final.language_code for final in finals if final.language_code})),
    )


Span = tuple[int | None, int | None]
"""Where speech begins and ends in a segment, call clock in ms; None where nobody knows."""


def speech_span(segment: SegmentHistory, trace: CallTrace) -> Span:
    """Where speech begins and ends in a segment."""
    last = segment.last
    reference = trace.call.reference
    utterances = [u for u in (reference.utterances if reference else ()) if _is_inside(u, last)]
    start = min((u.start_ms for u in utterances), default=None)
    end = max((u.end_ms for u in utterances), default=None)
    if start is None or start < last.start_ms - TOLERANCE_MS:
        start = next(iter(_offsets(trace, ActivityKind.BEGIN, last)), None)
    if end is None or end > last.end_ms + TOLERANCE_MS:
        end = next(reversed(_offsets(trace, ActivityKind.END, last)), None)
    return start, end


def _is_inside(utterance: Utterance, result: Result) -> bool:
    overlap = min(utterance.end_ms, result.end_ms) - max(utterance.start_ms, result.start_ms)
    return utterance.channel_tag == result.channel_tag and overlap >= MIN_OVERLAP_MS


def _offsets(trace: CallTrace, kind: ActivityKind, result: Result) -> list[int]:
    events = (timed.event for timed in trace.events if isinstance(timed.event, SpeechActivity))
    return sorted(
        event.offset_ms
        for event in events
        if event.kind is kind
        and event.channel_tag == result.channel_tag
        and result.start_ms <= event.offset_ms <= result.end_ms
    )


def _first_interims(trace: CallTrace, segments: list[SegmentHistory], spans: list[Span]) -> Iterable[float]:
    for segment, (start_ms, _) in zip(segments, spans, strict=True):
        sent_s = sent_at_s(trace, start_ms) if start_ms is not None else None
        if segment.interims and sent_s is not None:
            yield segment.interims[0].t_s - sent_s


def _finalizations(trace: CallTrace, segments: list[SegmentHistory], spans: list[Span]) -> Iterable[float]:
    for segment, (_, end_ms) in zip(segments, spans, strict=True):
        if segment.final and end_ms is not None and segment.last.end_reason is not EndReason.MAX_LENGTH:
            yield segment.final.t_s - end_ms / MS_PER_S / trace.speed


def sent_at_s(trace: CallTrace, offset_ms: float) -> float | None:
    """When the chunk that holds this offset was sent; None if it never was."""
    return next((chunk.t_s for chunk in trace.sent if chunk.end_ms > offset_ms), None)


def _gaps(segments: list[SegmentHistory]) -> Iterable[float]:
    for segment in segments:
        for before, after in zip(segment.results, segment.results[1:], strict=False):
            yield after.t_s - before.t_s


def _speech_s(segment: SegmentHistory, span: Span) -> float:
    start_ms, end_ms = span
    last = segment.last
    start_ms = last.start_ms if start_ms is None else start_ms
    end_ms = last.end_ms if end_ms is None else end_ms
    return max(0, end_ms - start_ms) / MS_PER_S


def _words(text: str) -> list[str]:
    stripped = (word.strip(string.punctuation).casefold() for word in text.split())
    return [word for word in stripped if word]


def taken_back(segment: SegmentHistory) -> int:
    """Words of interims that the next result of the segment did not begin with; case and punctuation do not count."""
    texts = [_words(timed.result.transcript) for timed in segment.results]
    return sum(len(before) - _common_length(before, after) for before, after in zip(texts, texts[1:], strict=False))


def _common_length(first: Sequence[str], second: Sequence[str]) -> int:
    length = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        length += 1
    return length


def stable_violations(segment: SegmentHistory) -> int:
    """Interims whose stable text is not how every later result of the segment begins."""
    return sum(
        any(
            not later.result.transcript.startswith(_stable_text(timed.result)) for later in segment.results[index + 1 :]
        )
        for index, timed in enumerate(segment.results)
        if not timed.result.is_final
    )


def _stable_text(result: Result) -> str:
    return result.transcript[: result.stable_length]
