"""Whose turn it is: a party's turn begins with its speech and ends with its last words.

Rules:
1. A turn is STARTED, then ENDED; speech that begins before ENDED was said belongs to the same turn.
2. ENDS_PROBABLY tells the words that will be the final's if the pause goes on. It is followed by GOES_ON or ENDED.
3. ENDED comes behind the final result of the turn's last segment and repeats its words, none if there were none.
4. Words that come when speech goes on already make no ENDS_PROBABLY.
"""

from collections.abc import Iterator

from pipeline.events import RecognitionResult, TurnEvent, TurnKind
from pipeline.frontend import FrontEndEvent, SpeechPaused, SpeechResumed, SpeechStarted, SpeechStopped
from pipeline.pending import EarlyWords
from pipeline.types import SAMPLES_PER_MS


class TurnWatch:
    """The turns of one channel."""

    def __init__(self, channel_tag: int) -> None:
        self._channel_tag = channel_tag
        self._has_begun = False
        self._ends_probably = False
        self._is_speaking = False
        """Not since the newest pause."""
        self._is_open = False
        """An utterance is."""
        self._last_final: RecognitionResult | None = None

    def hear(self, event: FrontEndEvent) -> Iterator[TurnEvent]:
        """Takes what the audio side found."""
        if isinstance(event, SpeechStarted):
            self._is_speaking = self._is_open = True
            yield from self._begin(event.sample)
        elif isinstance(event, SpeechResumed):
            self._is_speaking = True
            yield from self._begin(event.sample)
        elif isinstance(event, SpeechPaused):
            self._is_speaking = False
        elif isinstance(event, SpeechStopped):
            self._is_speaking = self._is_open = False

    def hear_words(self, words: EarlyWords) -> Iterator[TurnEvent]:
        """Takes the words of a pause."""
        if self._has_begun and not self._is_speaking:
            self._ends_probably = True
            yield self._event(
                TurnKind.ENDS_PROBABLY, words.speech_end_sample // SAMPLES_PER_MS, words.segment_id, words.transcript
            )

    def hear_final(self, final: RecognitionResult) -> None:
        """Takes a final result."""
        self._last_final = final

    def end(self, *, is_idle: bool) -> Iterator[TurnEvent]:
        """Ends the turn if nothing of it is missing; `is_idle` says that no segment waits for its final."""
        final = self._last_final
        if not self._has_begun or self._is_open or not is_idle or final is None:
            return
        self._has_begun = self._ends_probably = False
        self._last_final = None
        transcript = final.alternatives[0].transcript if final.alternatives else ""
        yield self._event(TurnKind.ENDED, final.speech_end_ms, final.result_id, transcript)

    def _begin(self, sample: int) -> Iterator[TurnEvent]:
        offset_ms = sample // SAMPLES_PER_MS
        if not self._has_begun:
            self._has_begun = True
            yield self._event(TurnKind.STARTED, offset_ms)
        elif self._ends_probably:
            self._ends_probably = False
            yield self._event(TurnKind.GOES_ON, offset_ms)

    def _event(self, kind: TurnKind, offset_ms: int, result_id: str = "", transcript: str = "") -> TurnEvent:
        return TurnEvent(
            kind=kind, channel_tag=self._channel_tag, offset_ms=offset_ms, result_id=result_id, transcript=transcript
        )
