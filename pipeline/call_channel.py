"""One party of a call: audio side, result side, and when the next interim is due."""

from collections.abc import Iterable

from pipeline.channels import ChannelPair, Origin
from pipeline.config import SessionConfig
from pipeline.events import ActivityKind, RecognitionResult, SceneEvent, SessionEvent, SpeechActivity, WithheldReason
from pipeline.frontend import ChannelFrontEnd, FrontEndEvent, SpeechPaused, SpeechStarted, SpeechStopped
from pipeline.joining import NumberJoiner
from pipeline.pending import EarlyWords
from pipeline.segmentation import OpenSegment
from pipeline.sequencing import ResultSequencer, SequencerEffect
from pipeline.turns import TurnWatch
from pipeline.types import (
    FRAME_SAMPLES,
    SAMPLES_PER_MS,
    CancelDecode,
    DecodeRequest,
    DecodeResult,
    Samples,
    SpeechSegment,
)

_DOUBTFUL_SAMPLES = 5_000 * SAMPLES_PER_MS
"""Within so much of a segment it shows whether it is the party's own."""

ChannelEffect = SessionEvent | DecodeRequest | CancelDecode


class CallChannel:
    """One party: audio side, result side, and when the next interim is due."""

    def __init__(self, session_id: str, channel_tag: int, config: SessionConfig, pair: ChannelPair | None) -> None:
        self.channel_tag = channel_tag
        self._config = config
        self._pair = pair
        self._start_sample = config.start_offset_ms * SAMPLES_PER_MS
        self.front_end = ChannelFrontEnd(channel_tag, config)
        self.results = ResultSequencer(session_id, channel_tag, config)
        self._joiner = NumberJoiner(config.endpointing)
        self._turns = TurnWatch(channel_tag) if config.turn_events else None
        self._interim_due_sample = 0
        self._now_sample = self._start_sample

    @property
    def is_idle(self) -> bool:
        """Whether every segment has its final and none is held back."""
        return self.results.is_idle and self._joiner.is_idle

    @property
    def final_up_to_sample(self) -> int:
        """Everything before this is final, call clock at 16 kHz."""
        unfinished = self.results.earliest_unfinished_sample
        held_start_ms = self._joiner.held_start_ms
        held = None if held_start_ms is None else held_start_ms * SAMPLES_PER_MS
        starts = (unfinished, held, self.front_end.earliest_needed_sample)
        return min(start for start in starts if start is not None)

    def advance(self, frame: Samples, origin: Origin, now_sample: int) -> Iterable[ChannelEffect]:
        """Takes 10 ms that end at `now_sample`."""
        self._now_sample = now_sample
        yield from self.apply(self.front_end.advance(frame, origin))
        if self._config.interim.enabled and self.front_end.is_voiced and now_sample >= self._interim_due_sample:
            yield from self._request_interim(now_sample)
        if not self._joiner.is_idle:
            yield from self._tell(())

    def cut(self, now_sample: int) -> Iterable[ChannelEffect]:
        """What is said from here on belongs to no number that was said before."""
        self._now_sample = now_sample
        self._joiner.cut(now_sample // SAMPLES_PER_MS)
        yield from self._tell(())

    def receive(self, result: DecodeResult) -> Iterable[ChannelEffect]:
        """Takes an engine's answer."""
        yield from self._tell(self.results.receive(result))

    def apply(self, events: Iterable[FrontEndEvent]) -> Iterable[ChannelEffect]:
        """Turns what the front end found into events and requests."""
        for event in events:
            if self._turns is not None:
                yield from self._turns.hear(event)
            yield from self._apply(event)

    def _apply(self, event: FrontEndEvent) -> Iterable[ChannelEffect]:
        match event:
            case SpeechStarted():
                self._interim_due_sample = event.sample + self._config.interim.first_after_ms * SAMPLES_PER_MS
                yield from self._activity(ActivityKind.BEGIN, event.sample)
            case SpeechPaused() if self._withheld(event.heard) is None:
                yield from self._tell(self.results.request_early_final(event.heard, event.speech_end_sample))
            case SpeechStopped():
                yield from self._activity(ActivityKind.END, event.sample)
            case SceneEvent() if self._config.scene_events:
                yield event
            case SpeechSegment():
                reason = self._withheld(event)
                asked = self.results.request_final(event) if reason is None else self.results.withhold(event, reason)
                yield from self._tell(asked)

    def _tell(self, effects: Iterable[SequencerEffect]) -> Iterable[ChannelEffect]:
        """Passes on what the result side says, and what it means for the turn."""
        for effect in effects:
            if isinstance(effect, EarlyWords):
                words = self._joiner.whole_words(effect)
                yield from self._turns.hear_words(words) if self._turns is not None else ()
            elif isinstance(effect, RecognitionResult):
                yield from self._pass(self._joiner.put(effect))
            else:
                yield effect
        if not self._joiner.is_idle:
            yield from self._pass(self._joiner.release(self._now_sample // SAMPLES_PER_MS, self._next_start_ms()))
        if self._turns is not None:
            yield from self._turns.end(is_idle=self.is_idle)

    def _pass(self, results: Iterable[RecognitionResult]) -> Iterable[RecognitionResult]:
        for result in results:
            yield result
            if self._turns is not None and result.is_final:
                self._turns.hear_final(result)

    def _next_start_ms(self) -> int | None:
        """Where speech behind the newest final begins, if it has begun."""
        next_start_sample = self.results.first_speech_start_sample
        if next_start_sample is None and (heard := self.front_end.open_segment) is not None:
            next_start_sample = heard.speech_start_sample
        return None if next_start_sample is None else next_start_sample // SAMPLES_PER_MS

    def _request_interim(self, now_sample: int) -> Iterable[ChannelEffect]:
        if (heard := self.front_end.open_segment) is not None:
            self._interim_due_sample = now_sample + self._config.interim.interval_ms * SAMPLES_PER_MS
            if len(heard.samples) <= _DOUBTFUL_SAMPLES and self._withheld(heard) is not None:
                return
            yield from self._tell(self.results.request_interim(heard, self.front_end.speech_end_sample))

    def _withheld(self, segment: OpenSegment | SpeechSegment) -> WithheldReason | None:
        """Why what was heard is not this party's, if it is not."""
        if self._pair is None:
            return None
        start_frame = (segment.start_sample - self._start_sample) // FRAME_SAMPLES
        return self._pair.withheld(self.channel_tag, start_frame, start_frame + len(segment.samples) // FRAME_SAMPLES)

    def _activity(self, kind: ActivityKind, sample: int) -> Iterable[SpeechActivity]:
        if self._config.speech_activity_events:
            yield SpeechActivity(kind=kind, channel_tag=self.channel_tag, offset_ms=sample // SAMPLES_PER_MS)
