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
7. Finals of both channels come in call order, as `pipeline.ordering` says.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, Literal

from pipeline.audio.framing import Flush, FrameAssembler, HintsChange, Mark, MissingAudio, PressedKey, SkippedTime
from pipeline.call_channel import CallChannel, ChannelEffect
from pipeline.channels import ChannelPair, Origin
from pipeline.config import HintsUpdate, SessionConfig
from pipeline.errors import InvalidConfigError
from pipeline.events import (
    AudioAcknowledged,
    NoticeCode,
    RecognitionResult,
    SessionNotice,
)
from pipeline.frontend import ChannelFrontEnd, FrontEndEvent
from pipeline.line_watch import LineWatch
from pipeline.ordering import CallOrder
from pipeline.types import (
    FRAME_MS,
    FRAME_SAMPLES,
    SAMPLES_PER_MS,
    DecodeResult,
    Samples,
)

_GAP_FILL_BEYOND_HANGOVER_MS = 1_000
"""A gap is filled with silence until every open utterance has surely ended; the rest is skipped."""
_FRAMES_PER_S = 1000 // FRAME_MS


_PAIR = 2
"""Channels that are compared with each other."""


class Need(Enum):
    """What a session waits for."""

    AUDIO = "AUDIO"


NEED_AUDIO: Final = Need.AUDIO
"""Nothing to do until something is received."""

Effect = ChannelEffect | Literal[Need.AUDIO]


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
        frame_samples = config.audio_format.sample_rate_hz // _FRAMES_PER_S
        self._pair = ChannelPair(frame_samples, config.start_offset_ms) if len(tags) == _PAIR else None
        self._channels = {tag: CallChannel(session_id, tag, config, self._pair) for tag in tags}
        self._order = CallOrder({tag: channel.results for tag, channel in self._channels.items()})
        self._scene_events = config.scene_events
        self._session_prefix = f"{session_id}/"
        self._answers: deque[DecodeResult] = deque()
        self._effects: deque[ChannelEffect] = deque()
        self._end_received = False
        self._ended = False
        self._header_noticed = False
        self._acknowledged_ms = config.start_offset_ms

    @property
    def is_done(self) -> bool:
        """Whether the stream has ended, every segment has its final and every effect was taken."""
        idle = all(channel.is_idle for channel in self._channels.values())
        return self._ended and idle and self._order.is_idle and not self._effects

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

    def receive_key(self, digit: str, channel_tag: int) -> None:
        """Stores that the telephone system saw a key pressed: one of 0 to 9, *, #, A to D.

        Raises:
            InvalidConfigError: there is no such channel.
        """
        if channel_tag not in self._channels:
            limit = f"{channel_tag} is outside 1 to {len(self._channels)}; name the channel of who pressed it"
            raise InvalidConfigError("control.dtmf.channel_tag", limit)
        self._assembler.receive_key(digit, channel_tag)

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
        if isinstance(taken, Mark):
            self._take_mark(taken)
        elif taken is not None:
            self._take_frame(taken)
        elif self._end_received and not self._ended:
            self._ended = True
            self._take_from_all(ChannelFrontEnd.end)
            self._cut_numbers()
            self._tell_news(at_end=True)
            self._acknowledge()
        else:
            return False
        return True

    def _take_mark(self, mark: Mark) -> None:
        match mark:
            case Flush():
                self._take_from_all(ChannelFrontEnd.flush)
                self._cut_numbers()
            case SkippedTime():
                self._skip(mark.num_frames)
            case MissingAudio():
                self._take_from_all(lambda front_end: front_end.miss_audio(mark.duration_ms))
            case PressedKey():
                pressed = self._channels[mark.channel_tag]
                self._add(pressed.apply(pressed.front_end.press_key(mark.digit)))
            case HintsChange():
                self._update_hints(mark.update)

    def _take_frame(self, frame: Samples) -> None:
        self._num_frames += 1
        origins: Mapping[int, Origin] = {} if self._pair is None else self._pair.hear(frame)
        for samples, (tag, channel) in zip(frame, self._channels.items(), strict=True):
            self._add(channel.advance(samples, origins.get(tag, Origin.OWN), self._now_sample))
        voiced = (channel.front_end.is_voiced for channel in self._channels.values())
        self._effects.extend(self._line_watch.hear(self._assembler.newest_frame, voiced))
        self._tell_news()

    def _take_from_all(self, step: Callable[[ChannelFrontEnd], list[FrontEndEvent]]) -> None:
        """Lets all front ends take a step before anything of it has effects."""
        found = [(channel, step(channel.front_end)) for channel in self._channels.values()]
        for channel, events in found:
            self._add(channel.apply(events))

    def _cut_numbers(self) -> None:
        for channel in self._channels.values():
            self._add(channel.cut(self._now_sample))

    def _update_hints(self, update: HintsUpdate) -> None:
        for channel in self._channels.values():
            channel.results.update_hints(update.apply(channel.results.newest_hints), self._now_sample)

    def _skip(self, num_frames: int) -> None:
        self._take_from_all(lambda front_end: front_end.skip(num_frames))
        if self._pair is not None:
            self._pair.skip(num_frames)
        self._num_frames += num_frames

    def _take_answer(self, result: DecodeResult) -> None:
        tag = self._channel_of(result.request_id)
        if tag is None:
            return
        self._add(self._channels[tag].receive(result))

    def _add(self, effects: Iterable[ChannelEffect]) -> None:
        """Results go out in the order of the call; what is final now is acknowledged."""
        ordered = self._order.put(effects)
        self._effects.extend(ordered)
        if any(isinstance(effect, RecognitionResult) and effect.is_final for effect in ordered):
            self._acknowledge()

    def _tell_news(self, *, at_end: bool = False) -> None:
        if self._pair is not None and self._scene_events:
            self._effects.extend(self._pair.news(at_end=at_end))

    def _channel_of(self, request_id: str) -> int | None:
        """Request ids are `session/channel-segment/revision`."""
        if not request_id.startswith(self._session_prefix):
            return None
        tag = int(request_id.removeprefix(self._session_prefix).split("-", 1)[0])
        return tag if tag in self._channels else None

    def _acknowledge(self) -> None:
        idle = all(channel.is_idle for channel in self._channels.values())
        if self._ended and idle and self._order.is_idle:
            final_up_to_ms = self.audio_received_ms
        else:
            final_up_to_ms = min(c.final_up_to_sample for c in self._channels.values()) // SAMPLES_PER_MS
            final_up_to_ms = min([final_up_to_ms, *self._order.held_starts_ms])
        if final_up_to_ms > self._acknowledged_ms:
            self._acknowledged_ms = final_up_to_ms
            self._effects.append(AudioAcknowledged(offset_ms=final_up_to_ms))

    def _notice_header(self) -> None:
        if self._assembler.header_found and not self._header_noticed:
            self._header_noticed = True
            message = "the audio began with a WAV header, which was left out; send bare samples"
            self._effects.append(SessionNotice(code=NoticeCode.WAV_HEADER_SKIPPED, message=message))
