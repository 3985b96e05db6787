"""The recognition of one call, without I/O: no clock, no thread, no network, no model.

Theory of operation. `receive_*` only stores. `next_effect` pulls: it hands out what is ready, else it takes one
step (one decode answer, or one 10 ms frame of all channels) and looks again, until there is an effect or nothing
left to do. The driver carries the effects out: it sends events to the caller and requests to an engine.

Rules, each one a property test:
1. Exactly one final per segment; finals in audio order per channel.
2. No interim after its final, none of the next segment before it.
3. Finals do not depend on chunking, engine delay or batch mates.
4. When each request is answered before the next frame, the whole log does not depend on chunking.
5. `result_end_ms` never decreases on a channel; after the end and all answers, `is_done`.
6. At most one interim is in flight on a channel; a newer revision cancels the older.
"""

from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Final, Literal

from pipeline.audio.framing import Flush, FrameAssembler, HintsChange, SkippedTime
from pipeline.config import HintsUpdate, SessionConfig
from pipeline.events import (
    ActivityKind,
    AudioAcknowledged,
    NoticeCode,
    RecognitionResult,
    SessionEvent,
    SessionNotice,
    SpeechActivity,
)
from pipeline.frontend import ChannelFrontEnd, FrontEndEvent, SpeechPaused, SpeechStarted, SpeechStopped
from pipeline.line_watch import LineWatch
from pipeline.sequencing import ResultSequencer
from pipeline.types import FRAME_SAMPLES, SAMPLES_PER_MS, CancelDecode, DecodeRequest, DecodeResult, Samples

_GAP_FILL_BEYOND_HANGOVER_MS = 1_000
"""A gap is filled with silence until every open utterance has surely ended; the rest is skipped."""


class Need(Enum):
    """What a session waits for."""

    AUDIO = "AUDIO"


NEED_AUDIO: Final = Need.AUDIO
"""Nothing to do until something is received."""

Effect = SessionEvent | DecodeRequest | CancelDecode | Literal[Need.AUDIO]
_StoredEffect = SessionEvent | DecodeRequest | CancelDecode


class _Channel:
    """One party: audio side, result side, and when the next interim is due."""

    def __init__(self, session_id: str, channel_tag: int, config: SessionConfig) -> None:
        self.channel_tag = channel_tag
        self._config = config
        self.front_end = ChannelFrontEnd(channel_tag, config)
        self.results = ResultSequencer(session_id, channel_tag, config)
        self._interim_due_sample = 0

    @property
    def final_up_to_sample(self) -> int:
        """Everything before this is final, call clock at 16 kHz."""
        unfinished = self.results.earliest_unfinished_sample
        needed = self.front_end.earliest_needed_sample
        return needed if unfinished is None else min(unfinished, needed)

    def advance(self, frame: Samples, now_sample: int) -> Iterable[_StoredEffect]:
        """Takes 10 ms that end at `now_sample`."""
        yield from self.apply(self.front_end.advance(frame))
        if self._config.interim.enabled and self.front_end.is_voiced and now_sample >= self._interim_due_sample:
            yield from self._request_interim(now_sample)

    def apply(self, events: Iterable[FrontEndEvent]) -> Iterable[_StoredEffect]:
        for event in events:
            if isinstance(event, SpeechStarted):
                self._interim_due_sample = event.sample + self._config.interim.first_after_ms * SAMPLES_PER_MS
                yield from self._activity(ActivityKind.BEGIN, event.sample)
            elif isinstance(event, SpeechPaused):
                yield from self.results.request_early_final(event.heard, event.speech_end_sample)
            elif isinstance(event, SpeechStopped):
                yield from self._activity(ActivityKind.END, event.sample)
            else:
                yield from self.results.request_final(event)

    def _request_interim(self, now_sample: int) -> Iterable[_StoredEffect]:
        if (heard := self.front_end.open_segment) is not None:
            self._interim_due_sample = now_sample + self._config.interim.interval_ms * SAMPLES_PER_MS
            yield from self.results.request_interim(heard, self.front_end.speech_end_sample)

    def _activity(self, kind: ActivityKind, sample: int) -> Iterable[SpeechActivity]:
        if self._config.speech_activity_events:
            yield SpeechActivity(kind=kind, channel_tag=self.channel_tag, offset_ms=sample // SAMPLES_PER_MS)


class RecognitionSession:
    """One call; must be closed, since its channels hold native memory."""

    def __init__(self, session_id: str, config: SessionConfig) -> None:
        """`session_id` must be unique among the calls that share an engine.

        Raises:
            ComponentMissingError: the configured denoiser is not there.
        """
        self._start_sample = config.start_offset_ms * SAMPLES_PER_MS
        self._num_frames = 0
        filled_gap_ms = config.endpointing.hangover_ms + _GAP_FILL_BEYOND_HANGOVER_MS
        self._assembler = FrameAssembler(config.audio_format, max_filled_gap_ms=filled_gap_ms)
        self._line_watch = LineWatch(config.audio_format)
        tags = range(1, config.audio_format.num_channels + 1)
        self._channels = {tag: _Channel(session_id, tag, config) for tag in tags}
        self._session_prefix = f"{session_id}/"
        self._answers: deque[DecodeResult] = deque()
        self._effects: deque[_StoredEffect] = deque()
        self._end_received = False
        self._ended = False
        self._header_noticed = False
        self._acknowledged_ms = config.start_offset_ms

    @property
    def is_done(self) -> bool:
        """Whether the stream has ended, every segment has its final and every effect was taken."""
        idle = all(channel.results.is_idle for channel in self._channels.values())
        return self._ended and idle and not self._effects

    @property
    def audio_received_ms(self) -> int:
        """Call clock up to which audio was taken in."""
        return self._now_sample // SAMPLES_PER_MS

    def receive_audio(self, data: bytes) -> None:
        """Stores audio of any length in the declared encoding.

        Raises:
            InvalidAudioError: a WAV header contradicts the declared format.
        """
        self._assembler.receive_audio(data)

    def receive_gap(self, duration_ms: int) -> None:
        """Stores that the caller has no audio for this long; the call clock moves on."""
        self._assembler.receive_gap(duration_ms)

    def receive_flush(self) -> None:
        """Stores that all audio up to here shall be made final."""
        self._assembler.receive_flush()

    def receive_update(self, update: HintsUpdate) -> None:
        """Stores that what begins from here on is decoded with other hints."""
        self._assembler.receive_update(update)

    def receive_end(self) -> None:
        """Stores that no more audio follows."""
        if not self._end_received:
            self._end_received = True
            self._assembler.receive_end()

    def receive_decode(self, result: DecodeResult) -> None:
        """Stores an engine's answer."""
        self._answers.append(result)

    def next_effect(self) -> Effect:
        """Hands out the next thing to do, or NEED_AUDIO when there is nothing until something is received."""
        while not self._effects:
            if not self._step():
                return NEED_AUDIO
        return self._effects.popleft()

    def close(self) -> None:
        """Frees native state; may be called again."""
        for channel in self._channels.values():
            channel.front_end.close()

    @property
    def _now_sample(self) -> int:
        return self._start_sample + self._num_frames * FRAME_SAMPLES

    def _step(self) -> bool:
        if self._answers:
            self._take_answer(self._answers.popleft())
            return True
        taken = self._assembler.next_frame()
        self._notice_header()
        if isinstance(taken, Flush):
            self._take_events({tag: channel.front_end.flush() for tag, channel in self._channels.items()})
        elif isinstance(taken, SkippedTime):
            self._skip(taken.num_frames)
        elif isinstance(taken, HintsChange):
            self._update_hints(taken.update)
        elif taken is not None:
            self._take_frame(taken)
        elif self._end_received and not self._ended:
            self._ended = True
            self._take_events({tag: channel.front_end.end() for tag, channel in self._channels.items()})
            self._acknowledge()
        else:
            return False
        return True

    def _take_frame(self, frame: Samples) -> None:
        self._num_frames += 1
        for samples, channel in zip(frame, self._channels.values(), strict=True):
            self._effects.extend(channel.advance(samples, self._now_sample))
        voiced = (channel.front_end.is_voiced for channel in self._channels.values())
        self._effects.extend(self._line_watch.hear(self._assembler.newest_frame, voiced))

    def _take_events(self, events: dict[int, list[FrontEndEvent]]) -> None:
        for tag, channel in self._channels.items():
            self._effects.extend(channel.apply(events[tag]))

    def _update_hints(self, update: HintsUpdate) -> None:
        for channel in self._channels.values():
            channel.results.update_hints(update.apply(channel.results.newest_hints), self._now_sample)

    def _skip(self, num_frames: int) -> None:
        self._take_events({tag: channel.front_end.skip(num_frames) for tag, channel in self._channels.items()})
        self._num_frames += num_frames

    def _take_answer(self, result: DecodeResult) -> None:
        tag = self._channel_of(result.request_id)
        if tag is None:
            return
        effects = list(self._channels[tag].results.receive(result))
        self._effects.extend(effects)
        if any(isinstance(effect, RecognitionResult) and effect.is_final for effect in effects):
            self._acknowledge()

    def _channel_of(self, request_id: str) -> int | None:
        """Request ids are `session/channel-segment/revision`."""
        if not request_id.startswith(self._session_prefix):
            return None
        tag = int(request_id.removeprefix(self._session_prefix).split("-", 1)[0])
        return tag if tag in self._channels else None

    def _acknowledge(self) -> None:
        idle = all(channel.results.is_idle for channel in self._channels.values())
        if self._ended and idle:
            final_up_to_ms = self.audio_received_ms
        else:
            final_up_to_ms = min(c.final_up_to_sample for c in self._channels.values()) // SAMPLES_PER_MS
        if final_up_to_ms > self._acknowledged_ms:
            self._acknowledged_ms = final_up_to_ms
            self._effects.append(AudioAcknowledged(offset_ms=final_up_to_ms))

    def _notice_header(self) -> None:
        if self._assembler.header_found and not self._header_noticed:
            self._header_noticed = True
            message = "the audio began with a WAV header, which was left out; send bare samples"
            self._effects.append(SessionNotice(code=NoticeCode.WAV_HEADER_SKIPPED, message=message))
