"""One live call as an actor: one inbox, one loop, one session.

The loop takes an item, gives it to the session, and carries out the session's effects: events go to the caller,
requests to the worker. Wall time lives here and nowhere deeper. House rules:
1. Only the loop touches the session, so that nothing in the pipeline needs a lock.
2. Audio goes in by slices, with a turn of the event loop after each: a caller that sends an hour at once does not
   hold up the others.
3. A call with many finals at the engine lets its audio wait; answers always get through.
4. `close` is called on every way out and drops all that the call has at the worker.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from pipeline.events import NoticeCode, RecognitionResult, SessionEvent, SessionNotice
from pipeline.scheduling.worker import Worker
from pipeline.session import NEED_AUDIO, RecognitionSession
from pipeline.types import CancelDecode, DecodeRequest, DecodeResult
from server.arrivals import ArrivalLog, bytes_per_second, describe
from server.byterate import ByteRateWatch
from server.errors import CallCutError, EngineStalledError
from server.idle import IdleWatch
from server.inbox import Inbox
from server.lag import LagWatch
from server.messages import Audio, CallConfig, CallMessage, Flush, Gap, KeepAlive, KeyPressed, Update
from server.settings import ServerSettings
from server.telemetry import CallTelemetry, ResultLatency
from server.textguard import TextGuard

_SLICE_MS = 100
"""Audio given to the session at a time: some milliseconds of work."""
_AHEAD_MS = 2_000
"""A caller whose call clock is further ahead of its audio's first arrival is not live."""
_MS_PER_S = 1000


@dataclass(frozen=True, slots=True)
class _HalfClosed:
    """The caller sends no more."""


@dataclass(frozen=True, slots=True)
class _Failed:
    """Reading from the caller failed."""

    error: Exception


@dataclass(frozen=True, slots=True)
class _Cut:
    """The server ends the call."""


@dataclass(frozen=True, slots=True)
class _Tell:
    """The server has something to say to the caller."""

    send: Callable[[], Awaitable[None]] = field(repr=False)


_Item = CallMessage | DecodeResult | _Tell | _HalfClosed | _Failed | _Cut

Emit = Callable[[SessionEvent, ResultLatency], Awaitable[None]]
"""Sends an event to the caller; waits while the caller is slow."""


class Call:
    """One call from its settings to its last final; made on the event loop's thread."""

    def __init__(
        self, config: CallConfig, worker: Worker, emit: Emit, settings: ServerSettings, telemetry: CallTelemetry
    ) -> None:
        """Raises ComponentMissingError when the settings ask for what this installation lacks."""
        self._config = config
        self._worker = worker
        self._emit = emit
        self._settings = settings
        self._telemetry = telemetry
        self._session_id = uuid4().hex
        self._session = RecognitionSession(self._session_id, config.session)
        self._loop = asyncio.get_running_loop()
        self._inbox: Inbox[_Item] = Inbox(settings.inbox_bytes)
        audio_format = config.session.audio_format
        self._slice_bytes = bytes_per_second(audio_format) * _SLICE_MS // _MS_PER_S
        self._arrivals = ArrivalLog(audio_format, config.session.start_offset_ms, time.monotonic())
        self._idle = IdleWatch(settings.idle_gap_ms, self._arrivals, self._fill_gap)
        self._byte_rate = ByteRateWatch(bytes_per_second(audio_format), describe(audio_format))
        self._lag = LagWatch(settings.behind_notice_s)
        self._text_guard = TextGuard(audio_format.encoding)
        self._interim_shown: set[str] = set()
        self._pending_finals: set[str] = set()
        self._reading_ended = False
        self._was_cut = False

    @property
    def audio_ms(self) -> int:
        """Audio taken in so far."""
        return self._session.audio_received_ms - self._config.session.start_offset_ms

    async def receive(self, message: CallMessage) -> None:
        """Takes what the caller sent; waits while the inbox is full. Raises InvalidAudioError."""
        now_s = time.monotonic()
        if isinstance(message, Audio):
            self._text_guard.feed(message.data)
            self._arrivals.add_audio(len(message.data), now_s)
            if (warning := self._byte_rate.add_audio(len(message.data), now_s)) is not None:
                self.tell(partial(self._send, SessionNotice(code=NoticeCode.SAMPLE_RATE_MISMATCH, message=warning)))
            for start in range(0, len(message.data), self._slice_bytes):
                data = message.data[start : start + self._slice_bytes]
                await self._inbox.put(Audio(data), len(data))
        elif not isinstance(message, KeepAlive):
            if isinstance(message, Gap):
                self._byte_rate.pause()
                self._arrivals.add_gap(message.duration_ms, now_s)
            await self._inbox.put(message)

    def receive_end(self) -> None:
        """The caller half-closed: everything pending becomes final. Raises InvalidAudioError."""
        self._idle.stop()
        self._text_guard.end()
        self._inbox.put_now(_HalfClosed())

    def receive_failure(self, error: Exception) -> None:
        """Reading from the caller failed; ends the call after what was sent before."""
        self._inbox.put_now(_Failed(error))

    def tell(self, send: Callable[[], Awaitable[None]]) -> None:
        """Lets the loop send a message of the server between two events."""
        self._inbox.put_urgent(_Tell(send))

    def cut(self) -> None:
        """Ends the call now: what was taken in becomes final, then `run` raises CallCutError."""
        self._inbox.put_urgent(_Cut())

    async def run(self) -> None:
        """Serves the call until everything is final.

        Raises:
            InvalidConfigError: a message of the caller was wrong.
            InvalidAudioError: its audio was.
            CallCutError: the server ended the call.
            EngineStalledError: the engine does not answer.
        """
        self._idle.start()
        while not self._session.is_done:
            await self._take(await self._next_item())
            await self._carry_out_effects()
            await asyncio.sleep(0)
        if self._was_cut:
            raise CallCutError(self._session.audio_received_ms)

    def close(self) -> None:
        """Frees the session and drops its work; may be called again."""
        self._idle.stop()
        self._inbox.discard()
        self._worker.cancel_session(self._session_id)
        self._session.close()

    async def _next_item(self) -> _Item:
        must_wait = len(self._pending_finals) >= self._settings.max_pending_finals
        answers_only = must_wait or self._reading_ended
        timeout_s = self._settings.decode_timeout_s if answers_only else None
        try:
            async with asyncio.timeout(timeout_s):
                return await self._inbox.get(urgent_only=must_wait)
        except TimeoutError:
            raise EngineStalledError(self._settings.decode_timeout_s) from None

    async def _take(self, item: _Item) -> None:
        match item:
            case Audio(data):
                self._session.receive_audio(data)
            case DecodeResult():
                self._pending_finals.discard(item.request_id)
                self._telemetry.answered(item)
                self._session.receive_decode(item)
            case Gap(duration_ms):
                self._session.receive_gap(duration_ms)
            case Flush():
                self._session.receive_flush()
            case KeyPressed(digit, channel_tag):
                self._session.receive_key(digit, channel_tag)
            case Update(hints):
                self._session.receive_update(hints)
            case _Tell():
                await item.send()
            case _:
                self._take_end(item)

    def _take_end(self, item: _Item) -> None:
        if isinstance(item, _Failed):
            raise item.error
        self._was_cut = isinstance(item, _Cut) and not self._reading_ended
        self._reading_ended = True
        self._idle.stop()
        self._inbox.discard()
        self._session.receive_end()

    async def _carry_out_effects(self) -> None:
        while (effect := self._session.next_effect()) is not NEED_AUDIO:
            if isinstance(effect, DecodeRequest):
                self._submit(effect)
            elif isinstance(effect, CancelDecode):
                self._pending_finals.discard(effect.request_id)
                self._worker.cancel(effect.request_id)
            else:
                await self._send(effect)

    def _submit(self, request: DecodeRequest) -> None:
        if request.is_final:
            self._pending_finals.add(request.request_id)
        self._telemetry.requested(request)
        self._worker.submit(request, self._hand_over)

    def _hand_over(self, result: DecodeResult) -> None:
        """Runs on the worker's thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
            self._loop.call_soon_threadsafe(self._inbox.put_urgent, result)

    async def _send(self, event: SessionEvent) -> None:
        latency = self._latency(event)
        await self._emit(event, latency)
        self._telemetry.sent(event, latency)
        if isinstance(event, RecognitionResult):
            await self._tell_when_behind(event)

    async def _tell_when_behind(self, result: RecognitionResult) -> None:
        now_s = time.monotonic()
        if self._arrivals.lag_ms(now_s) < -_AHEAD_MS:
            return  # a recording, sent faster than it was spoken, waits its turn
        lag_s = now_s - self._arrivals.arrived_s(result.result_end_ms)
        if self._lag.falls_behind(lag_s):
            message = f"results are {lag_s:.1f} s behind the audio; interims come more rarely, nothing is lost"
            await self._send(SessionNotice(code=NoticeCode.FALLING_BEHIND, message=message))

    def _latency(self, event: SessionEvent) -> ResultLatency:
        if not isinstance(event, RecognitionResult):
            return ResultLatency()
        now_s = time.monotonic()
        if event.is_final:
            self._interim_shown.discard(event.result_id)
            return ResultLatency(finalization_s=now_s - self._arrivals.arrived_s(event.speech_end_ms))
        if event.result_id in self._interim_shown:
            return ResultLatency()
        self._interim_shown.add(event.result_id)
        return ResultLatency(first_interim_s=now_s - self._arrivals.arrived_s(event.speech_start_ms))

    def _fill_gap(self, duration_ms: int) -> bool:
        """The caller has fallen silent; False while audio of it still waits to be read."""
        if not self._inbox.is_empty:
            return False
        self._inbox.put_now(Gap(duration_ms))
        return True
