"""A real server on a free port of this process, and short ways to call it."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from pipeline.engines.base import Engine
from server.app import Server
from server.lifecycle import Lifecycle
from server.settings import Settings, load_settings
from talkpath.speech.v1 import speech_pb2 as pb
from talkpath.speech.v1 import speech_pb2_grpc

RATE_HZ = 8_000
FOR_TESTS = (
    "server.listen=127.0.0.1:0",
    "server.retry_after_s=0.5",
    "recognition.vad=energy",  # no model, and certain about noise bursts
    "recognition.denoising=off",
    "telemetry.log_level=debug",
)


@dataclass
class LocalServer:
    """A server in this process."""

    address: str
    lifecycle: Lifecycle


def settings_for_tests(models: Sequence[str] = ("scripted:demo",), **overrides: object) -> Settings:
    """Settings with `section__key=value` changed."""
    changes = [f"{name.replace('__', '.', 1)}={value}" for name, value in overrides.items()]
    return load_settings(None, [*FOR_TESTS, f"models.names={','.join(models)}", *changes])


@asynccontextmanager
async def local_server(
    models: Sequence[str] = ("scripted:demo",), *, engines: Sequence[Engine] | None = None, **overrides: object
) -> AsyncIterator[LocalServer]:
    """Runs a server; `engines` are used instead of `models`, `section__key=value` changes settings."""
    server = Server(settings_for_tests(models, **overrides))
    lifecycle = await server.start(engines)
    try:
        yield LocalServer(server.address, lifecycle)
    finally:
        await lifecycle.stop(0)


@asynccontextmanager
async def running_server(
    models: Sequence[str] = ("scripted:demo",), *, engines: Sequence[Engine] | None = None, **overrides: object
) -> AsyncIterator[str]:
    """As `local_server`; gives the address alone."""
    async with local_server(models, engines=engines, **overrides) as server:
        yield server.address


@asynccontextmanager
async def speech_stub(address: str, **options: int) -> AsyncIterator[speech_pb2_grpc.SpeechStub]:
    """A client of its own connection; `options` are channel arguments with `.` as `__`."""
    arguments = [(f"grpc.{name.replace('__', '.')}", value) for name, value in options.items()]
    # Channels of a process share connections unless told otherwise.
    async with grpc.aio.insecure_channel(address, [*arguments, ("grpc.use_local_subchannel_pool", 1)]) as channel:
        yield speech_pb2_grpc.SpeechStub(channel)


def config(**fields: object) -> pb.RecognitionConfig:
    """LINEAR16 at 8 kHz, with these fields changed."""
    return pb.RecognitionConfig(**{"encoding": "LINEAR16", "sample_rate_hertz": RATE_HZ, **fields})


def start(recognition: pb.RecognitionConfig | None = None, **fields: object) -> pb.StreamingRecognizeRequest:
    """The first message of a call."""
    settings = pb.StreamingConfig(config=recognition if recognition is not None else config(), **fields)
    return pb.StreamingRecognizeRequest(streaming_config=settings)


def audio(data: bytes) -> pb.StreamingRecognizeRequest:
    """A chunk of audio."""
    return pb.StreamingRecognizeRequest(audio_content=data)


def control(**fields: object) -> pb.StreamingRecognizeRequest:
    """A control message."""
    return pb.StreamingRecognizeRequest(control=pb.Control(**fields))


FLUSH = control(flush=pb.Control.Flush())
KEEP_ALIVE = control(keep_alive=pb.Control.KeepAlive())


async def converse(
    stub: speech_pb2_grpc.SpeechStub, requests: Iterable[pb.StreamingRecognizeRequest], **options: object
) -> list[pb.StreamingRecognizeResponse]:
    """Sends all requests, half-closes and returns all responses. Raises AioRpcError."""
    call = stub.StreamingRecognize(iter(requests), **options)
    return [response async for response in call]


async def converse_live(
    stub: speech_pb2_grpc.SpeechStub,
    heard: Iterable[pb.StreamingRecognizeRequest],
    then: Iterable[pb.StreamingRecognizeRequest],
    **options: object,
) -> list[pb.StreamingRecognizeResponse]:
    """As `converse`, for calls whose interims matter: sends `then` when an interim of `heard` has come back."""
    call = stub.StreamingRecognize(**options)
    for request in heard:
        await call.write(request)
    responses = []
    while not results_of(responses):
        responses.append(await call.read())
    for request in then:
        await call.write(request)
    await call.done_writing()
    return responses + await rest_of(call)


async def rest_of(call: grpc.aio.StreamStreamCall) -> list[pb.StreamingRecognizeResponse]:
    """Reads a call that is driven by `read` and `write` to its end."""
    responses = []
    while (response := await call.read()) is not grpc.aio.EOF:
        responses.append(response)
    return responses


async def read_until_final(call: grpc.aio.StreamStreamCall) -> list[pb.StreamingRecognizeResponse]:
    """Reads a call up to its next final."""
    responses = []
    while not finals_of(responses):
        responses.append(await call.read())
    return responses


def results_of(responses: Iterable[pb.StreamingRecognizeResponse]) -> list[pb.RecognitionResult]:
    """The results among the responses."""
    return [response.result for response in responses if response.WhichOneof("event") == "result"]


def finals_of(responses: Iterable[pb.StreamingRecognizeResponse]) -> list[pb.RecognitionResult]:
    """The final results among the responses."""
    return [result for result in results_of(responses) if result.is_final]


def details_of(error: grpc.aio.AioRpcError) -> list[Message]:
    """The google.rpc details of a status."""
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    status = status_pb2.Status.FromString(packed)
    assert status.code == error.code().value[0]
    assert status.message == error.details()
    kinds = {kind.DESCRIPTOR.full_name: kind for kind in _DETAIL_KINDS}
    details = []
    for detail in status.details:
        message = kinds[detail.TypeName()]()
        assert detail.Unpack(message)
        details.append(message)
    return details


_DETAIL_KINDS = (error_details_pb2.BadRequest, error_details_pb2.RetryInfo, error_details_pb2.ErrorInfo)
