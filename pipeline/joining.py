"""Joins the finals of a number that was said with pauses: sixteen digits in four breaths are one result.

Theory of operation. A final that stops in the middle of a number is held back. If the same party goes on within
`number_hangover_ms` of its last word, the final of what follows is joined to it, under the result id of the first
part; interims in between show the whole text so far. Each part was decoded from its own audio, as a final always is,
so that joining changes no word and no word time, only where a result ends and how its number is written.

Rules:
1. Whether two finals are joined depends on their texts and on where speech began and ended alone, never on when an
   answer came: rule 3 of `pipeline.session` holds.
2. A final is held no longer than until it is sure that nobody goes on in time. Flush and end of stream release it.
3. What follows and turns out to have no words takes back its interims and ends nothing.
4. Only finals that a pause ended are held, and a joined result grows no longer than a segment may be.
"""

from collections.abc import Iterator
from dataclasses import replace

from pipeline.config import MAX_DOUBT_MS, EndpointingConfig
from pipeline.events import RecognitionResult
from pipeline.numbers.unfinished import ends_in_unfinished_number, format_joined
from pipeline.pending import EarlyWords
from pipeline.types import EndReason, Hypothesis


class NumberJoiner:
    """The finals of one channel on their way out."""

    def __init__(self, endpointing: EndpointingConfig) -> None:
        self._hangover_ms = endpointing.number_hangover_ms
        self._max_segment_ms = endpointing.max_segment_ms
        self._onset_ms = endpointing.onset_ms + MAX_DOUBT_MS
        """Speech that begins now is known so much later at most."""
        self._is_on = endpointing.number_hangover_ms > endpointing.hangover_ms
        self._held: RecognitionResult | None = None
        self._last_start_ms = 0
        """Where the newest part of what is held began."""
        self._cuts_ms: list[int] = []
        """What begins at one of these or later joins nothing that began before."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held back."""
        return self._held is None

    @property
    def held_start_ms(self) -> int | None:
        """Where the result that is held back begins, call clock; None when there is none."""
        return None if self._held is None else self._held.result_start_ms

    def cut(self, now_ms: int) -> None:
        """What is said from here on belongs to nothing that was said before."""
        self._cuts_ms.append(now_ms - self._onset_ms)

    def put(self, result: RecognitionResult) -> Iterator[RecognitionResult]:
        """Takes the channel's results in their order; returns those that go out now."""
        if self._held is not None and not self._joins(self._held, result.speech_start_ms):
            yield self._let_go(self._held)
        whole = result if self._held is None else _join(self._held, result)
        if not result.is_final:
            yield whole
            return
        self._last_start_ms = result.speech_start_ms
        self._cuts_ms = [cut_ms for cut_ms in self._cuts_ms if cut_ms > self._last_start_ms]
        self._held = whole if self._may_go_on(whole) else None
        if self._held is None:
            yield whole

    def release(self, now_ms: int, next_start_ms: int | None) -> Iterator[RecognitionResult]:
        """Returns what is held once it is sure that it does not go on.

        Args:
            now_ms: call clock.
            next_start_ms: where the party's next speech begins; None while it has not begun.
        """
        earliest_ms = now_ms - self._onset_ms if next_start_ms is None else next_start_ms
        if self._held is not None and not self._joins(self._held, earliest_ms):
            yield self._let_go(self._held)

    def whole_words(self, words: EarlyWords) -> EarlyWords:
        """The words of a pause behind those that are held already."""
        if self._held is None:
            return words
        transcript = _joined_transcript(self._held.alternatives[0].transcript, words.transcript)
        return replace(words, segment_id=self._held.result_id, transcript=transcript)

    def _let_go(self, held: RecognitionResult) -> RecognitionResult:
        self._held = None
        return held

    def _joins(self, held: RecognitionResult, next_start_ms: int) -> bool:
        is_cut = any(self._last_start_ms < cut_ms <= next_start_ms for cut_ms in self._cuts_ms)
        is_soon = next_start_ms - held.speech_end_ms <= self._hangover_ms
        return is_soon and not is_cut and next_start_ms - held.result_start_ms <= self._max_segment_ms

    def _may_go_on(self, final: RecognitionResult) -> bool:
        if not self._is_on or not final.alternatives or final.end_reason is not EndReason.SILENCE:
            return False
        best = final.alternatives[0]
        return ends_in_unfinished_number(best.transcript, best.language_code)


def _joined_transcript(first: str, then: str) -> str:
    """As it was said, stops and all: words that were shown as stable stay as they are."""
    return f"{first} {then}" if then else first


def _join(held: RecognitionResult, part: RecognitionResult) -> RecognitionResult:
    """The part under the name of what is held, behind its words."""
    best = held.alternatives[0]
    then = part.alternatives[0] if part.alternatives else None
    stable_length = len(best.transcript) + (1 + part.stable_length if part.stable_length else 0)
    return replace(
        part,
        result_id=held.result_id,
        alternatives=(best if then is None else _join_hypotheses(best, then, is_final=part.is_final),),
        stable_length=stable_length,
        result_start_ms=held.result_start_ms,
        speech_start_ms=held.speech_start_ms,
        speech_end_ms=held.speech_end_ms if then is None else part.speech_end_ms,
        withheld=None,
    )


def _join_hypotheses(first: Hypothesis, then: Hypothesis, *, is_final: bool) -> Hypothesis:
    lengths = len(first.transcript), len(then.transcript)
    formatted = format_joined(first.formatted_transcript, then.transcript, first.language_code) if is_final else ""
    return replace(
        first,
        transcript=_joined_transcript(first.transcript, then.transcript),
        words=first.words + then.words,
        confidence=(first.confidence * lengths[0] + then.confidence * lengths[1]) / sum(lengths),
        tokens=first.tokens + then.tokens,
        formatted_transcript=formatted,
        certainties=(),
    )
