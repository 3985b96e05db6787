"""A servicer that speaks the contract by heart: for the client's tests, and for the failures no real server offers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
from google.protobuf import any_pb2
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from talkpath.speech.v1 import speech_pb2 as pb
from talkpath.speech.v1 import speech_pb2_grpc

Request = pb.StreamingRecognizeRequest
Response = pb.StreamingRecognizeResponse
SEGMENT_MS = 1_000
SPEECH_BEGIN_MS, SPEECH_END_MS = 100, 800
"""Where speech lies in each segment of a second."""
BYTES_PER_SAMPLE = {pb.RecognitionConfig.LINEAR16: 2, pb.RecognitionConfig.MULAW: 1, pb.RecognitionConfig.ALAW: 1}


def ms(value: float) -> Duration:
    duration = Duration()
    duration.FromMilliseconds(round(value))
    return duration


def result(text: str, result_id: str, tag: int, start_ms: float, end_ms: float, **fields: object) -> Response:
    alternatives = [pb.Alternative(transcript=text, confidence=0.9)] if text else []
    message = pb.RecognitionResult(
        result_id=result_id,
        alternatives=alternatives,
        channel_tag=tag,
        language_code="en",
        result_start_offset=ms(start_ms),
        result_end_offset=ms(end_ms),
        **fields,
    )
    return Response(result=message)


@dataclass
class SecondBySecond:
    """Hears one sentence of the script in each full second of a channel: BEGIN, two interims, END, final, ack."""

    script: dict[int, list[str]]
    heard_bytes: int = 0

    async def __call__(
        self, requests: AsyncIterator[Request], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Response]:
        first = await anext(requests)
        config = first.streaming_config.config
        channels = config.audio_channel_count or 1
        bytes_per_ms = config.sample_rate_hertz * channels * BYTES_PER_SAMPLE[config.encoding] / 1_000
        first.streaming_config.call.call_id = first.streaming_config.call.call_id or "made-by-server"
        yield Response(
            call_started=pb.CallStarted(call_id=first.streaming_config.call.call_id, config=first.streaming_config)
        )
        heard_steps, total_ms = 0, 0.0
        async for request in requests:
            self.heard_bytes += len(request.audio_content)
            total_ms = self.heard_bytes / bytes_per_ms
            steps = int(total_ms // 100)
            for step in range(heard_steps + 1, steps + 1):
                for tag in range(1, channels + 1):
                    for response in self.at(step * 100, tag):
                        yield response
            heard_steps = steps
        yield Response(ack=pb.Ack(audio_offset=ms(total_ms)))

    def at(self, offset_ms: int, tag: int) -> list[Response]:
        """What there is to say once a channel has heard this much."""
        second, within_ms = divmod(offset_ms - 1, SEGMENT_MS)
        within_ms += 1
        words = self.script.get(tag, [])[second : second + 1]
        if not words or not words[0]:
            return []
        start_ms = second * SEGMENT_MS
        result_id = f"{tag}-{second}"
        if within_ms == 200:
            return [self._activity(pb.SpeechActivity.BEGIN, tag, start_ms + SPEECH_BEGIN_MS)]
        if within_ms in (400, 700):
            count = 1 if within_ms == 400 else 2
            text = " ".join(words[0].split()[:count])
            stable = len(words[0].split()[0]) if count == 2 else 0
            return [result(text, result_id, tag, start_ms, offset_ms, stability=0.5, stable_length=stable)]
        if within_ms == SEGMENT_MS:
            final = result(words[0], result_id, tag, start_ms, offset_ms, is_final=True, end_reason=1, latency=ms(200))
            return [self._activity(pb.SpeechActivity.END, tag, start_ms + SPEECH_END_MS), final]
        return []

    @staticmethod
    def _activity(kind: pb.SpeechActivity.Kind, tag: int, offset_ms: int) -> Response:
        return Response(speech_activity=pb.SpeechActivity(kind=kind, channel_tag=tag, offset=ms(offset_ms)))


Behaviour = Callable[[AsyncIterator[Request], grpc.aio.ServicerContext], AsyncIterator[Response]]


@dataclass
class FakeSpeech(speech_pb2_grpc.SpeechServicer):
    """Answers every call as told and keeps what it was asked."""

    behaviour: Callable[[], Behaviour]
    max_message_bytes: int = 1 << 20
    requests: list[list[Request]] = field(default_factory=list)
    """Of each call, in the order they came."""
    info_requests: int = 0

    async def StreamingRecognize(  # noqa: N802
        self, requests: AsyncIterator[Request], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Response]:
        kept: list[Request] = []
        self.requests.append(kept)

        async def keeping() -> AsyncIterator[Request]:
            async for request in requests:
                kept.append(request)
                yield request

        async for response in self.behaviour()(keeping(), context):
            yield response

    async def Recognize(  # noqa: N802
        self, request: pb.RecognizeRequest, context: grpc.aio.ServicerContext
    ) -> pb.RecognizeResponse:
        if request.config.sample_rate_hertz != 8000:
            await abort_with(
                context,
                grpc.StatusCode.INVALID_ARGUMENT,
                f"config.sample_rate_hertz: {request.config.sample_rate_hertz} is not supported",
                bad_request("config.sample_rate_hertz", "use 8000"),
            )
        final = result(f"{len(request.audio_content)} bytes", "1", 1, 0, 10, is_final=True, end_reason=4).result
        return pb.RecognizeResponse(results=[final], audio_duration=ms(len(request.audio_content) / 16))

    async def GetServerInfo(  # noqa: N802
        self, request: pb.GetServerInfoRequest, context: grpc.aio.ServicerContext
    ) -> pb.GetServerInfoResponse:
        self.info_requests += 1
        return pb.GetServerInfoResponse(
            version="fake",
            models=[pb.ModelInfo(name="tiny.en", language_codes=["en"], precision="float32", device="cpu")],
            limits=pb.Limits(
                max_message_bytes=self.max_message_bytes,
                max_recognize_duration=ms(60_000),
                max_concurrent_calls=10,
                max_channel_count=2,
                sample_rates_hertz=[8000, 16000, 24000, 48000],
            ),
        )


def bad_request(field_name: str, description: str) -> error_details_pb2.BadRequest:
    violation = error_details_pb2.BadRequest.FieldViolation(field=field_name, description=description)
    return error_details_pb2.BadRequest(field_violations=[violation])


async def abort_with(context: grpc.aio.ServicerContext, code: grpc.StatusCode, message: str, *details: object) -> None:
    packed = []
    for detail in details:
        packed.append(any_pb2.Any())
        packed[-1].Pack(detail)
    status = rpc_status.to_status(status_pb2.Status(code=code.value[0], message=message, details=packed))
    await context.abort(code, message, status.trailing_metadata)


@asynccontextmanager
async def serving(servicer: FakeSpeech) -> AsyncIterator[str]:
    """The servicer behind a real socket; yields its address."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", servicer.max_message_bytes)])
    speech_pb2_grpc.add_SpeechServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def script_server(script: dict[int, list[str]]) -> FakeSpeech:
    return FakeSpeech(lambda: SecondBySecond(script))
