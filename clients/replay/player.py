"""Plays planned calls against a server and keeps what was sent and received, with times."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from clients.audio_files import AudioFileError
from clients.call import Call
from clients.errors import RecognitionError
from clients.recognizer import Recognizer
from clients.replay.pacing import MS_PER_S, Pacer, chunk_bounds
from clients.replay.plan import PlannedCall, load_audio
from clients.types import CallEvent

UNREADABLE = "UNREADABLE"
"""Stands for a gRPC status when a recording failed before its call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedEvent:
    """An event and when it came, in seconds since its stream began."""

    t_s: float
    event: CallEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class SentChunk:
    """A chunk: the offset of its end in the audio, and when it was sent, in seconds since the stream began."""

    end_ms: float
    t_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTrace:
    """Everything one played call sent and received."""

    call: PlannedCall
    speed: float
    events: tuple[TimedEvent, ...] = field(repr=False)
    sent: tuple[SentChunk, ...] = field(repr=False)
    acknowledged_ms: int
    wall_s: float
    error: RecognitionError | None = None

    @property
    def sent_ms(self) -> float:
        """Audio sent."""
        return self.sent[-1].end_ms if self.sent else 0.0


class Observer(Protocol):
    """Is told what happens while it happens; must return quickly."""

    def call_began(self, call: PlannedCall) -> None:
        """Its stream is open."""

    def audio_sent(self, call: PlannedCall, sent_ms: float) -> None:
        """A chunk went out; `sent_ms` counts all of the call."""

    def event_received(self, call: PlannedCall, event: TimedEvent) -> None:
        """The server said something."""

    def call_ended(self, trace: CallTrace) -> None:
        """It is over, for better or worse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """How calls are played."""

    speed: float = 1.0
    """1 is real time, 0 as fast as the server takes it."""
    concurrency: int = 1
    chunk_ms: int = 100


class _Recorder:
    """Collects one call's trace while it is played."""

    def __init__(self, call: PlannedCall, pacer: Pacer, observer: Observer) -> None:
        self._call = call
        self._pacer = pacer
        self._observer = observer
        self.events: list[TimedEvent] = []
        self.sent: list[SentChunk] = []

    def received(self, event: CallEvent) -> None:
        timed = TimedEvent(t_s=self._pacer.elapsed_s(), event=event)
        self.events.append(timed)
        self._observer.event_received(self._call, timed)

    def sent_until(self, end_ms: float) -> None:
        self.sent.append(SentChunk(end_ms=end_ms, t_s=self._pacer.elapsed_s()))
        self._observer.audio_sent(self._call, end_ms)


async def play_call(
    recognizer: Recognizer, planned: PlannedCall, options: PlayOptions, observer: Observer, pacer: Pacer | None = None
) -> CallTrace:
    """Plays one call to its end; a failure of the call becomes part of its trace."""
    pacer = pacer or Pacer(options.speed)
    recorder = _Recorder(planned, pacer, observer)
    error: RecognitionError | None = None
    acknowledged_ms = 0
    try:
        audio = await asyncio.to_thread(load_audio, planned)
        async with recognizer.call(planned.settings) as call:
            pacer.start()
            observer.call_began(planned)
            sender = asyncio.create_task(_send(call, audio, options.chunk_ms, pacer, recorder.sent_until))
            try:
                async for event in call:
                    recorder.received(event)
            finally:
                acknowledged_ms = call.acknowledged_ms
                sender.cancel()
                await asyncio.wait([sender])
    except RecognitionError as failure:
        error = failure
    except AudioFileError as failure:
        error = RecognitionError(UNREADABLE, str(failure))
    trace = CallTrace(
        call=planned,
        speed=options.speed,
        events=tuple(recorder.events),
        sent=tuple(recorder.sent),
        acknowledged_ms=acknowledged_ms,
        wall_s=pacer.elapsed_s(),
        error=error,
    )
    observer.call_ended(trace)
    return trace


async def _send(call: Call, audio: bytes, chunk_ms: int, pacer: Pacer, sent_until: Callable[[float], None]) -> None:
    settings = call.settings
    frame_bytes = settings.num_channels * settings.encoding.bytes_per_sample
    try:
        for start, end in chunk_bounds(len(audio) // frame_bytes, settings.sample_rate_hz, chunk_ms):
            end_ms = MS_PER_S * end / settings.sample_rate_hz
            await pacer.wait_for(end_ms)
            await call.send_audio(audio[start * frame_bytes : end * frame_bytes])
            sent_until(end_ms)
        await call.half_close()
    except RecognitionError:
        return  # whoever reads the events is told the same


async def play_all(
    recognizer: Recognizer, calls: list[PlannedCall], options: PlayOptions, observer: Observer
) -> list[CallTrace]:
    """Plays every call once, at most `concurrency` at a time; traces in the order of the calls."""
    waiting = iter(calls)
    traces: list[CallTrace] = []

    async def play_in_turn() -> None:
        for call in waiting:
            traces.append(await play_call(recognizer, call, options, observer))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(options.concurrency, len(calls))):
            group.create_task(play_in_turn())
    return sorted(traces, key=lambda trace: trace.call.index)
