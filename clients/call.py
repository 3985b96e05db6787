"""One live call: audio goes out while events come in, and neither waits for the other."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

import grpc

from clients.errors import EndingStream, RecognitionError, StreamEnd
from clients.types import Ack, CallEvent, CallSettings, CallStarted, SpeechContext

END_OF_EVENTS: Any = grpc.aio.EOF  # type: ignore[attr-defined]  # missing in the type stubs


class Stream(EndingStream, Protocol):
    """What a call needs of the bidirectional stream below it (a `grpc.aio` stream call)."""

    async def write(self, request: Any) -> None:
        """Sends one message; waits while the server does not read."""

    async def read(self) -> Any:
        """The next message, or `grpc.aio.EOF`."""

    async def done_writing(self) -> None:
        """Half-closes."""

    def cancel(self) -> bool:
        """Ends the stream at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireFormat:
    """How requests are made and responses read, so that a call needs no wire type."""

    settings: Callable[[CallSettings], Any]
    audio: Callable[[bytes], Any]
    gap: Callable[[int], Any]
    """Takes milliseconds."""
    dtmf: Callable[[str, int], Any]
    """Takes the digit and its channel."""
    flush: Callable[[], Any]
    keep_alive: Callable[[], Any]
    update: Callable[[str, Sequence[SpeechContext] | None], Any]
    """Takes a language code."""
    event: Callable[[Any], CallEvent | None]
    """None for a response that this client is too old to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStream:
    """A stream on which nothing was sent yet."""

    stream: Stream
    max_audio_bytes: int
    """Most audio that one message may hold."""


class Call:
    """One call. Enter it with `async with`, send audio, and iterate over its events, in one task or in two.

    Events are taken off the wire as they arrive, whether someone iterates or not: sending everything first and
    reading afterwards cannot lock up, and a timeout around the iteration leaves the call alive. Sending waits while
    the server does not read. Leaving the block before the server ended the call cancels it: half-close and iterate to
    the end to get everything.
    """

    def __init__(
        self, settings: CallSettings, open_stream: Callable[[], Awaitable[OpenStream]], wire: WireFormat
    ) -> None:
        self.settings = settings
        self.started: CallStarted | None = None
        """The server's first event, once it was received."""
        self.sent_ms = float(settings.resume_offset_ms or 0)
        """Where in the call clock the audio and gaps sent so far end."""
        self.acknowledged_ms = 0
        """All audio before this offset is final."""
        self._open_stream = open_stream
        self._wire = wire
        self._write_lock = asyncio.Lock()
        self._events: asyncio.Queue[CallEvent | None] = asyncio.Queue()  # None: the call has ended
        self._is_half_closed = False
        self._end: RecognitionError | None = None
        self._open: OpenStream | None = None
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Opens the stream and sends the settings.

        Raises:
            RecognitionError: The server could not be reached. Refused settings show when events are read.
        """
        self._open = await self._open_stream()
        self._reader = asyncio.create_task(self._read_events(self._open.stream))
        await self._write(self._wire.settings(self.settings))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
        if self._reader is not None:
            await asyncio.wait([self._reader])

    async def send_audio(self, audio: bytes) -> None:
        """Sends audio in the call's encoding, channels interleaved; any size, split where the server's limit asks.

        Cancelling this while it waits for the server ends the call: nobody could say how much of it was sent.

        Raises:
            RecognitionError: The call is over.
        """
        limit = self._opened().max_audio_bytes
        view = memoryview(audio)
        async with self._write_lock:
            for start in range(0, len(view), limit):
                piece = bytes(view[start : start + limit])
                await self._write(self._wire.audio(piece))
                self.sent_ms += 1_000 * len(piece) / self.settings.bytes_per_s

    async def send_gap_ms(self, duration_ms: int) -> None:
        """Says that this much audio is missing (lost packets, hold without media): the call clock moves on.

        Raises:
            RecognitionError: The call is over.
        """
        async with self._write_lock:
            await self._write(self._wire.gap(duration_ms))
            self.sent_ms += duration_ms

    async def send_dtmf(self, digit: str, channel_tag: int = 1) -> None:
        """Says that the telephone system saw a key pressed now (RFC 4733, SIP INFO).

        Args:
            digit: One of 0 to 9, *, #, A to D.
            channel_tag: Who pressed it, 1..N.

        Raises:
            RecognitionError: The call is over.
        """
        async with self._write_lock:
            await self._write(self._wire.dtmf(digit, channel_tag))

    async def flush(self) -> None:
        """Asks for finals of what is pending; the call goes on.

        Raises:
            RecognitionError: The call is over.
        """
        async with self._write_lock:
            await self._write(self._wire.flush())

    async def keep_alive(self) -> None:
        """Shows the server that the caller is still there.

        Raises:
            RecognitionError: The call is over.
        """
        async with self._write_lock:
            await self._write(self._wire.keep_alive())

    async def update(self, *, language_code: str = "", speech_contexts: Sequence[SpeechContext] | None = None) -> None:
        """Changes settings for the utterances that begin from here on.

        Args:
            language_code: BCP-47, or "auto"; empty leaves it.
            speech_contexts: Instead of those before, none at all if empty; None leaves them.

        Raises:
            RecognitionError: The call is over. A language that the model does not know shows when events are read.
        """
        async with self._write_lock:
            await self._write(self._wire.update(language_code, speech_contexts))

    async def half_close(self) -> None:
        """Says that no more audio comes: everything pending becomes final, then the events end. Idempotent."""
        stream = self._opened().stream
        async with self._write_lock:
            if self._is_half_closed or self._is_over():
                return
            self._is_half_closed = True
            try:
                await stream.done_writing()
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                return  # the call is over: reading its events says why

    def cancel(self) -> None:
        """Ends the call at once; what was not received is lost. Does nothing when the call is over."""
        if self._open is not None and not self._is_over():
            self._open.stream.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> CallEvent:
        """The next event.

        Raises:
            RecognitionError: The server refused or broke the call; what it said before was yielded before.
        """
        event = await self._events.get()
        if event is not None:
            return event
        self._events.put_nowait(None)
        if self._end is not None:
            raise self._end
        raise StopAsyncIteration

    def _opened(self) -> OpenStream:
        if self._open is None:
            raise RuntimeError("the call is not open; enter it with `async with recognizer.call(settings) as call:`")
        return self._open

    def _is_over(self) -> bool:
        return self._reader is None or self._reader.done()

    async def _write(self, request: Any) -> None:
        stream = self._opened().stream
        if self._is_half_closed:
            raise RuntimeError("the call is half-closed; send everything before half_close()")
        try:
            await stream.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            raise await self._reason_of_end() from error

    async def _reason_of_end(self) -> RecognitionError:
        if self._reader is not None:
            await asyncio.wait([self._reader])
        return self._end or RecognitionError("OK", "the server ended the call before the end of its audio")

    async def _read_events(self, stream: Stream) -> None:
        end = StreamEnd(stream)
        try:
            while (response := await stream.read()) is not END_OF_EVENTS:
                event = self._wire.event(response)
                if event is not None:
                    self._receive(event)
        except grpc.aio.AioRpcError as error:
            self._end = end.error(error)
        except asyncio.CancelledError:  # how grpc.aio says that the stream was cancelled, by either side
            self._end = end.error() or RecognitionError("CANCELLED", "the call was cancelled by its caller")
        finally:
            self._events.put_nowait(None)

    def _receive(self, event: CallEvent) -> None:
        if isinstance(event, CallStarted):
            self.started = event
        elif isinstance(event, Ack):
            self.acknowledged_ms = event.offset_ms
        self._events.put_nowait(event)


@asynccontextmanager
async def sending(call: Call, audio: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[None]:
    """Sends `audio` and half-closes while the block reads; what `audio` raises ends the call and is raised here."""
    sender = asyncio.create_task(_send_all(call, audio))
    try:
        yield
    except RecognitionError:
        if sender.done() and not sender.cancelled() and _is_foreign(sender.exception()):
            await sender
        raise
    finally:
        sender.cancel()
        await asyncio.wait([sender])


def _is_foreign(error: BaseException | None) -> bool:
    return error is not None and not isinstance(error, RecognitionError)


async def _send_all(call: Call, audio: Iterable[bytes] | AsyncIterable[bytes]) -> None:
    try:
        async for chunk in _iterate(audio):
            await call.send_audio(chunk)
        await call.half_close()
    except RecognitionError:
        return  # reading the events says the same
    except BaseException:
        call.cancel()
        raise


async def _iterate(audio: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(audio, AsyncIterable):
        async for chunk in audio:
            yield chunk
    else:
        for chunk in audio:
            yield chunk
