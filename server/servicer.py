"""The Speech service: gRPC on one side, one `Call` each on the other."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from typing import Any, TypeVar

import grpc

from pipeline.errors import EngineError, InvalidConfigError
from pipeline.events import NoticeCode, RecognitionResult, SessionEvent, SessionNotice
from pipeline.scheduling.worker import Worker
from server import wire
from server.admission import Admission
from server.arrivals import bytes_per_second
from server.call import Call, Emit
from server.callrecord import CALL_ID_KEY, CallRecord
from server.errors import DrainingError
from server.messages import Audio, CallConfig, CallMessage, Terms
from server.settings import ServerSettings
from server.telemetry import ResultLatency, Telemetry
from talkpath.speech.v1 import speech_pb2_grpc

SERVICE_NAME = "talkpath.speech.v1.Speech"
_END_OF_STREAM = grpc.aio.EOF  # type: ignore[attr-defined]  # missing in the stubs
_VERSION = metadata.version("talkpath")

ResponseT = TypeVar("ResponseT")
Context = Any
"""grpc.aio.ServicerContext, which is generic in its stubs only."""
_Send = Callable[[wire.StreamingResponse], Awaitable[None]]


class SpeechServicer(speech_pb2_grpc.SpeechServicer):
    """Serves calls with the loaded models."""

    def __init__(
        self,
        workers: Mapping[str, Worker],
        terms: Terms,
        settings: ServerSettings,
        admission: Admission,
        telemetry: Telemetry,
    ) -> None:
        """`workers` are running, one a model of `terms`."""
        self._workers = workers
        self._terms = terms
        self._settings = settings
        self._admission = admission
        self._telemetry = telemetry
        self._calls: dict[Call, _Send | None] = {}
        """Live calls and how to speak to them; unary ones cannot be spoken to."""
        self._opening: set[asyncio.Timeout] = set()
        """Streams that have not sent their settings yet."""
        self._is_draining = False

    async def StreamingRecognize(self, request_iterator: Any, context: Context) -> None:  # type: ignore[override]
        """See the contract."""
        await self._serve("StreamingRecognize", context, partial(self._stream, context))

    async def Recognize(self, request: wire.UnaryRequest, context: Context) -> wire.UnaryResponse:
        """See the contract."""
        return await self._serve("Recognize", context, partial(self._recognize, request))

    async def GetServerInfo(self, request: Any, context: Context) -> wire.ServerInfoResponse:
        """See the contract."""
        return wire.render_server_info(self._terms, _VERSION)

    def tell_draining(self, grace_s: float) -> None:
        """Tells all live calls that the server shuts down; streams that have not begun end at once."""
        self._is_draining = True
        for opening in self._opening:
            opening.reschedule(asyncio.get_running_loop().time())
        for call, send in self._calls.items():
            if send is not None:
                call.tell(partial(send, wire.render_draining(grace_s)))

    def cut_calls(self) -> int:
        """Ends all live calls as soon as what they sent is final; returns how many."""
        for call in self._calls:
            call.cut()
        return len(self._calls)

    async def _serve(
        self, method: str, context: Context, work: Callable[[CallRecord], Awaitable[ResponseT]]
    ) -> ResponseT:
        sent = dict(context.invocation_metadata())
        record = CallRecord(method, sent.get(CALL_ID_KEY, ""), self._telemetry.begin_call(method, sent))
        try:
            with self._admission.admit():
                response = await work(record)
        except asyncio.CancelledError:
            record.ended("CANCELLED")
            raise
        except Exception as error:
            status = wire.status_of(error)
            record.ended(status.code.name, error)
            await context.abort(status.code, status.details, (*status.trailing_metadata, *record.trailers))
        record.ended("OK")
        context.set_trailing_metadata(record.trailers)
        return response

    async def _stream(self, context: Context, record: CallRecord) -> None:
        config = wire.parse_start(await self._first_request(context), self._terms, record.call_id)
        record.started(config)

        async def emit(event: SessionEvent, latency: ResultLatency) -> None:
            await context.write(wire.render_event(event, config, latency.finalization_s))

        with self._live_call(config, emit, record, context.write) as call:
            await context.write(wire.render_call_started(config))
            await _run(call, self._messages(context, config))

    async def _recognize(self, request: wire.UnaryRequest, record: CallRecord) -> wire.UnaryResponse:
        config, audio = wire.parse_recognize(request, self._terms, record.call_id)
        record.started(config)
        self._check_duration(config, audio)
        results: list[RecognitionResult] = []

        async def emit(event: SessionEvent, latency: ResultLatency) -> None:
            if isinstance(event, SessionNotice) and event.code is NoticeCode.DECODE_FAILED:
                raise EngineError(event.message)
            if isinstance(event, RecognitionResult) and event.alternatives:
                results.append(event)

        async def messages() -> AsyncIterator[CallMessage]:
            yield Audio(audio)

        with self._live_call(config, emit, record) as call:
            await _run(call, messages())
        return wire.render_recognized(results, config, record.audio_ms)

    @contextmanager
    def _live_call(
        self, config: CallConfig, emit: Emit, record: CallRecord, send: _Send | None = None
    ) -> Iterator[Call]:
        """A call that is drained with the others and closed on every way out."""
        call = Call(config, self._workers[config.model], emit, self._settings, record.telemetry)
        self._calls[call] = send
        try:
            yield call
        finally:
            del self._calls[call]
            record.audio_ms = call.audio_ms
            call.close()

    async def _first_request(self, context: Context) -> wire.StreamingRequest | None:
        timeout_s = self._settings.config_timeout_s
        opening = asyncio.timeout(timeout_s)
        self._opening.add(opening)
        try:
            async with opening:
                request = await context.read()
        except TimeoutError:
            if self._is_draining:
                raise DrainingError(self._settings.retry_after_s) from None
            raise InvalidConfigError(
                "streaming_config", f"did not come within {timeout_s:g} s (server.config_timeout_s); send it first"
            ) from None
        finally:
            self._opening.discard(opening)
        return None if request is _END_OF_STREAM else request

    async def _messages(self, context: Context, config: CallConfig) -> AsyncIterator[CallMessage]:
        while (request := await context.read()) is not _END_OF_STREAM:
            yield wire.parse_message(request, self._terms, config)

    def _check_duration(self, config: CallConfig, audio: bytes) -> None:
        duration_s = len(audio) / bytes_per_second(config.session.audio_format)
        limit_s = self._settings.max_recognize_s
        if duration_s > limit_s:
            raise InvalidConfigError(
                "audio_content", f"{duration_s:.1f} s exceed the limit of {limit_s:g} s; use StreamingRecognize"
            )


async def _run(call: Call, messages: AsyncIterator[CallMessage]) -> None:
    """Runs a call while what its caller sends is carried into it."""
    reader = asyncio.create_task(_read(messages, call))
    try:
        await call.run()
    finally:
        reader.cancel()


async def _read(messages: AsyncIterator[CallMessage], call: Call) -> None:
    """Carries what the caller sends into the call; a wrong message ends the call, not this task."""
    try:
        async for message in messages:
            await call.receive(message)
        call.receive_end()
    except Exception as error:  # noqa: BLE001  # whatever it is, the call owns it
        call.receive_failure(error)
