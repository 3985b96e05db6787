"""The async client SDK, and the one place of the clients where wire messages become typed values and back."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from talkpath.speech.v1 import speech_pb2 as pb
from talkpath.speech.v1.speech_pb2_grpc import SpeechStub

from clients.call import Call, OpenStream, WireFormat, sending
from clients.errors import MS_PER_S, recognition_error
from clients.types import (
    Ack,
    ActivityKind,
    Alternative,
    CallEvent,
    CallSettings,
    CallStarted,
    ChannelRole,
    Denoise,
    Encoding,
    Endpointing,
    EndReason,
    Limits,
    ModelInfo,
    Notice,
    NoticeCode,
    Recognition,
    Result,
    ServerInfo,
    SpeechActivity,
    Task,
    Word,
)

KEEPALIVE_TIME_MS = 30_000
"""Between two pings of a live call; servers send away who pings more often than they allow."""
KEEPALIVE_TIMEOUT_MS = 10_000
"""A ping unanswered for this long ends the connection, so that a dead peer is noticed within 40 s."""
CHANNEL_OPTIONS = (
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", -1),
    # Channels of a pool need connections of their own: servers and proxies limit the streams of one connection.
    ("grpc.use_local_subchannel_pool", 1),
)
MESSAGE_OVERHEAD_BYTES = 64
"""Room for the fields around the audio of a message."""


class Recognizer:
    """Connections to one server, as an async context manager; serves any number of calls at once."""

    def __init__(
        self,
        address: str,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        metadata: Sequence[tuple[str, str]] = (),
        num_connections: int = 1,
        max_message_bytes: int | None = None,
    ) -> None:
        """Connects with the first request. Make it inside a running event loop.

        Args:
            address: "HOST:PORT" of the server.
            credentials: TLS; None speaks plain text.
            metadata: Sent with every request, such as ("authorization", "Bearer ...").
            num_connections: Calls take turns on this many connections; take one for about 50 calls.
            max_message_bytes: Largest message to send; None asks the server once, before the first call.
        """
        self.address = address
        self._metadata = tuple(metadata)
        self._max_message_bytes = max_message_bytes
        self._channels = [_open_channel(address, credentials) for _ in range(num_connections)]
        self._stubs: list[Any] = [SpeechStub(channel) for channel in self._channels]
        self._num_calls = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends all connections, and with them all live calls."""
        await asyncio.gather(*(channel.close(None) for channel in self._channels))

    def call(self, settings: CallSettings) -> Call:
        """A call, to be entered with `async with`; `Call` describes its verbs."""
        return Call(settings, self._open_stream, WIRE_FORMAT)

    async def stream(
        self, audio: Iterable[bytes] | AsyncIterable[bytes], settings: CallSettings
    ) -> AsyncIterator[CallEvent]:
        """Plays `audio` as one call, as fast as it comes and the server takes it; yields the events to the end.

        Raises:
            RecognitionError: The server refused or broke the call. What `audio` raises is raised as it is.
        """
        async with self.call(settings) as call, sending(call, audio):
            async for event in call:
                yield event

    async def recognize(self, audio: bytes, settings: CallSettings) -> Recognition:
        """Recognises one short recording at once; `server_info` tells the longest that is accepted.

        Raises:
            RecognitionError: The server refused it.
        """
        request = pb.RecognizeRequest(
            config=_config_to_wire(settings),
            audio_content=audio,
            endpointing=_endpointing_to_wire(settings.endpointing),
        )
        try:
            response = await self._stubs[0].Recognize(request, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise recognition_error(error) from error
        return Recognition(
            results=tuple(_result(result) for result in response.results),
            audio_duration_ms=response.audio_duration.ToMilliseconds(),
        )

    async def server_info(self, *, timeout_s: float | None = None) -> ServerInfo:
        """What the server is and can do.

        Raises:
            RecognitionError: It could not be reached, or did not answer within `timeout_s`.
        """
        request = pb.GetServerInfoRequest()
        try:
            response = await self._stubs[0].GetServerInfo(request, metadata=self._metadata, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise recognition_error(error) from error
        return _server_info(response)

    async def _open_stream(self) -> OpenStream:
        if self._max_message_bytes is None:
            self._max_message_bytes = (await self.server_info()).limits.max_message_bytes
        stub = self._stubs[self._num_calls % len(self._stubs)]
        self._num_calls += 1
        return OpenStream(
            stream=stub.StreamingRecognize(metadata=self._metadata),
            max_audio_bytes=max(1, self._max_message_bytes - MESSAGE_OVERHEAD_BYTES),
        )


def _open_channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.aio.Channel:
    if credentials is None:
        return grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)
    return grpc.aio.secure_channel(address, credentials, options=CHANNEL_OPTIONS)


def _config_to_wire(settings: CallSettings) -> pb.RecognitionConfig:
    return pb.RecognitionConfig(
        encoding=pb.RecognitionConfig.AudioEncoding.Value(settings.encoding.value),
        sample_rate_hertz=settings.sample_rate_hz,
        audio_channel_count=settings.num_channels,
        language_code=settings.language_code,
        allowed_language_codes=settings.allowed_language_codes,
        model=settings.model,
        task=pb.RecognitionConfig.Task.Value(settings.task.value),
        enable_word_time_offsets=settings.word_time_offsets,
        enable_word_confidence=settings.word_confidence,
        max_alternatives=settings.max_alternatives,
        denoise=pb.RecognitionConfig.Denoise.Value(settings.denoise.value),
    )


def _endpointing_to_wire(endpointing: Endpointing) -> pb.EndpointingConfig:
    return pb.EndpointingConfig(
        onset_ms=endpointing.onset_ms or 0,
        hangover_ms=endpointing.hangover_ms or 0,
        max_segment_ms=endpointing.max_segment_ms or 0,
        pre_roll_ms=endpointing.pre_roll_ms or 0,
        sensitivity=endpointing.sensitivity,
    )


def _settings_to_wire(settings: CallSettings) -> pb.StreamingConfig:
    call = pb.CallInfo(
        call_id=settings.call_id,
        tenant=settings.tenant,
        agent_id=settings.agent_id,
        channel_roles={tag: pb.CallInfo.ChannelRole.Value(role.value) for tag, role in settings.channel_roles.items()},
        metadata=settings.metadata,
    )
    if settings.resume_offset_ms is not None:
        call.resume.audio_offset_ms = settings.resume_offset_ms
    return pb.StreamingConfig(
        config=_config_to_wire(settings),
        interim_results=settings.interim_results,
        enable_speech_activity_events=settings.speech_activity,
        endpointing=_endpointing_to_wire(settings.endpointing),
        call=call,
    )


EnumT = TypeVar("EnumT", bound=Enum)


def _enum(values: Any, number: int, unknown: EnumT) -> EnumT:
    """Our enum by the wire's name; `unknown` for what is not set, or newer than this client."""
    if number not in values.values():
        return unknown
    kind = type(unknown)
    name = values.Name(number)
    return kind(name) if name in {member.value for member in kind} else unknown


def _settings(message: pb.StreamingConfig) -> CallSettings:
    config, call, endpointing = message.config, message.call, message.endpointing
    return CallSettings(
        encoding=_enum(pb.RecognitionConfig.AudioEncoding, config.encoding, Encoding.LINEAR16),
        sample_rate_hz=config.sample_rate_hertz,
        num_channels=config.audio_channel_count or 1,
        language_code=config.language_code,
        allowed_language_codes=tuple(config.allowed_language_codes),
        model=config.model,
        task=_enum(pb.RecognitionConfig.Task, config.task, Task.TRANSCRIBE),
        word_time_offsets=config.enable_word_time_offsets,
        word_confidence=config.enable_word_confidence,
        max_alternatives=config.max_alternatives or 1,
        denoise=_enum(pb.RecognitionConfig.Denoise, config.denoise, Denoise.DEFAULT),
        endpointing=Endpointing(
            onset_ms=endpointing.onset_ms or None,
            hangover_ms=endpointing.hangover_ms or None,
            max_segment_ms=endpointing.max_segment_ms or None,
            pre_roll_ms=endpointing.pre_roll_ms or None,
            sensitivity=endpointing.sensitivity if endpointing.HasField("sensitivity") else None,
        ),
        interim_results=message.interim_results,
        speech_activity=message.enable_speech_activity_events,
        call_id=call.call_id,
        tenant=call.tenant,
        agent_id=call.agent_id,
        channel_roles={
            tag: _enum(pb.CallInfo.ChannelRole, role, ChannelRole.UNKNOWN) for tag, role in call.channel_roles.items()
        },
        metadata=dict(call.metadata),
        resume_offset_ms=call.resume.audio_offset_ms if call.HasField("resume") else None,
    )


def _alternative(message: pb.Alternative) -> Alternative:
    words = tuple(
        Word(
            text=word.word,
            start_ms=word.start_offset.ToMilliseconds(),
            end_ms=word.end_offset.ToMilliseconds(),
            confidence=word.confidence,
        )
        for word in message.words
    )
    return Alternative(transcript=message.transcript, confidence=message.confidence, words=words)


def _result(message: pb.RecognitionResult) -> Result:
    reasons = pb.RecognitionResult.EndReason
    has_reason = message.end_reason != reasons.END_REASON_UNSPECIFIED
    return Result(
        result_id=message.result_id,
        channel_tag=message.channel_tag,
        alternatives=tuple(_alternative(alternative) for alternative in message.alternatives),
        is_final=message.is_final,
        stability=message.stability,
        stable_length=message.stable_length,
        language_code=message.language_code,
        start_ms=message.result_start_offset.ToMilliseconds(),
        end_ms=message.result_end_offset.ToMilliseconds(),
        end_reason=_enum(reasons, message.end_reason, EndReason.SILENCE) if has_reason else None,
        latency_ms=message.latency.ToMicroseconds() / MS_PER_S if message.HasField("latency") else None,
    )


def _event(response: pb.StreamingRecognizeResponse) -> CallEvent | None:
    kind = response.WhichOneof("event")
    return _EVENT_READERS[kind](getattr(response, kind)) if kind else None


def _speech_activity(message: pb.SpeechActivity) -> SpeechActivity:
    kind = _enum(pb.SpeechActivity.Kind, message.kind, ActivityKind.BEGIN)
    return SpeechActivity(kind=kind, channel_tag=message.channel_tag, offset_ms=message.offset.ToMilliseconds())


def _notice(message: pb.Notice) -> Notice:
    code = _enum(pb.Notice.Code, message.code, NoticeCode.UNKNOWN)
    return Notice(code=code, message=message.message, channel_tag=message.channel_tag)


_EVENT_READERS: dict[str, Callable[[Any], CallEvent]] = {
    "call_started": lambda message: CallStarted(call_id=message.call_id, settings=_settings(message.config)),
    "result": _result,
    "speech_activity": _speech_activity,
    "ack": lambda message: Ack(offset_ms=message.audio_offset.ToMilliseconds()),
    "notice": _notice,
}


def _control(**fields: Any) -> pb.StreamingRecognizeRequest:
    return pb.StreamingRecognizeRequest(control=pb.Control(**fields))


WIRE_FORMAT = WireFormat(
    settings=lambda settings: pb.StreamingRecognizeRequest(streaming_config=_settings_to_wire(settings)),
    audio=lambda audio: pb.StreamingRecognizeRequest(audio_content=audio),
    gap=lambda duration_ms: _control(gap=pb.Control.Gap(duration_ms=duration_ms)),
    flush=lambda: _control(flush=pb.Control.Flush()),
    keep_alive=lambda: _control(keep_alive=pb.Control.KeepAlive()),
    event=_event,
)


def _server_info(message: pb.GetServerInfoResponse) -> ServerInfo:
    limits = message.limits
    return ServerInfo(
        version=message.version,
        models=tuple(
            ModelInfo(
                name=model.name,
                language_codes=tuple(model.language_codes),
                precision=model.precision,
                device=model.device,
            )
            for model in message.models
        ),
        limits=Limits(
            max_message_bytes=limits.max_message_bytes,
            max_recognize_duration_ms=limits.max_recognize_duration.ToMilliseconds(),
            max_concurrent_calls=limits.max_concurrent_calls,
            max_channel_count=limits.max_channel_count,
            sample_rates_hz=tuple(limits.sample_rates_hertz),
        ),
    )
