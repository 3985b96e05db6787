"""Wire messages to typed values and back: the one place of the clients that reads and makes messages."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, TypeVar

from clients.call import WireFormat
from clients.errors import MS_PER_S
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
    Profile,
    Result,
    Scene,
    SceneKind,
    ServerInfo,
    SpeechActivity,
    SpeechContext,
    Task,
    Turn,
    TurnKind,
    Word,
)
from talkpath.speech.v1 import speech_pb2 as pb


def config_to_wire(settings: CallSettings) -> pb.RecognitionConfig:
    """How to decode and recognise."""
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
        speech_contexts=_contexts_to_wire(settings.speech_contexts),
    )


def _contexts_to_wire(contexts: Iterable[SpeechContext]) -> list[pb.SpeechContext]:
    return [pb.SpeechContext(phrases=context.phrases, boost=context.boost or 0.0) for context in contexts]


def endpointing_to_wire(endpointing: Endpointing) -> pb.EndpointingConfig:
    """When speech counts as begun and as ended."""
    return pb.EndpointingConfig(
        onset_ms=endpointing.onset_ms or 0,
        hangover_ms=endpointing.hangover_ms or 0,
        number_hangover_ms=endpointing.number_hangover_ms or 0,
        max_segment_ms=endpointing.max_segment_ms or 0,
        pre_roll_ms=endpointing.pre_roll_ms or 0,
        sensitivity=endpointing.sensitivity,
        profile=pb.EndpointingConfig.Profile.Value(endpointing.profile.value),
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
        config=config_to_wire(settings),
        interim_results=settings.interim_results,
        enable_speech_activity_events=settings.speech_activity,
        enable_scene_events=settings.scene_events,
        enable_turn_events=settings.turn_events,
        endpointing=endpointing_to_wire(settings.endpointing),
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
            number_hangover_ms=endpointing.number_hangover_ms or None,
            max_segment_ms=endpointing.max_segment_ms or None,
            pre_roll_ms=endpointing.pre_roll_ms or None,
            profile=_enum(pb.EndpointingConfig.Profile, endpointing.profile, Profile.DEFAULT),
            sensitivity=endpointing.sensitivity if endpointing.HasField("sensitivity") else None,
        ),
        speech_contexts=tuple(
            SpeechContext(phrases=tuple(context.phrases), boost=context.boost or None)
            for context in config.speech_contexts
        ),
        interim_results=message.interim_results,
        speech_activity=message.enable_speech_activity_events,
        scene_events=message.enable_scene_events,
        turn_events=message.enable_turn_events,
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
    return Alternative(
        transcript=message.transcript,
        confidence=message.confidence,
        words=words,
        formatted_transcript=message.formatted_transcript,
    )


def read_result(message: pb.RecognitionResult) -> Result:
    """Words of one segment."""
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


def _scene(message: pb.Scene) -> Scene:
    return Scene(
        kind=_enum(pb.Scene.Kind, message.kind, SceneKind.UNKNOWN),
        channel_tag=message.channel_tag,
        offset_ms=message.offset.ToMilliseconds(),
        duration_ms=message.duration.ToMilliseconds(),
        is_over=message.is_over,
        digit=message.digit,
    )


def _turn(message: pb.Turn) -> Turn:
    return Turn(
        kind=_enum(pb.Turn.Kind, message.kind, TurnKind.UNKNOWN),
        channel_tag=message.channel_tag,
        offset_ms=message.offset.ToMilliseconds(),
        result_id=message.result_id,
        transcript=message.transcript,
    )


_EVENT_READERS: dict[str, Callable[[Any], CallEvent]] = {
    "call_started": lambda message: CallStarted(call_id=message.call_id, settings=_settings(message.config)),
    "result": read_result,
    "speech_activity": _speech_activity,
    "ack": lambda message: Ack(offset_ms=message.audio_offset.ToMilliseconds()),
    "notice": _notice,
    "scene": _scene,
    "turn": _turn,
}


def _update(language_code: str, contexts: Iterable[SpeechContext] | None) -> pb.Control.Update:
    return pb.Control.Update(
        language_code=language_code,
        speech_contexts=_contexts_to_wire(contexts or ()),
        replace_speech_contexts=contexts is not None,
    )


def _control(**fields: Any) -> pb.StreamingRecognizeRequest:
    return pb.StreamingRecognizeRequest(control=pb.Control(**fields))


WIRE_FORMAT = WireFormat(
    settings=lambda settings: pb.StreamingRecognizeRequest(streaming_config=_settings_to_wire(settings)),
    audio=lambda audio: pb.StreamingRecognizeRequest(audio_content=audio),
    gap=lambda duration_ms: _control(gap=pb.Control.Gap(duration_ms=duration_ms)),
    dtmf=lambda digit, channel_tag: _control(dtmf=pb.Control.Dtmf(digit=digit, channel_tag=channel_tag)),
    flush=lambda: _control(flush=pb.Control.Flush()),
    keep_alive=lambda: _control(keep_alive=pb.Control.KeepAlive()),
    update=lambda language_code, contexts: _control(update=_update(language_code, contexts)),
    event=_event,
)


def read_server_info(message: pb.GetServerInfoResponse) -> ServerInfo:
    """What the server is and can do."""
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
