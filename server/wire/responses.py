"""Responses out: events and settings become protobuf messages."""

from collections.abc import Iterable

from google.protobuf.duration_pb2 import Duration

from pipeline.config import MAX_CHANNELS, SUPPORTED_SAMPLE_RATES_HZ
from pipeline.events import (
    AudioAcknowledged,
    RecognitionResult,
    SceneEvent,
    SessionEvent,
    SessionNotice,
    SpeechActivity,
    TurnEvent,
)
from pipeline.types import Hypothesis, Word
from server.messages import CallConfig, Terms
from server.wire.contexts import render_contexts
from server.wire.tables import (
    ACTIVITY_KINDS,
    DENOISING,
    ENCODINGS,
    END_REASONS,
    NOTICE_CODES,
    PROFILES,
    ROLES,
    SCENE_KINDS,
    TASKS,
    TURN_KINDS,
)
from talkpath.speech.v1 import speech_pb2 as pb

StreamingResponse = pb.StreamingRecognizeResponse
UnaryResponse = pb.RecognizeResponse
ServerInfoResponse = pb.GetServerInfoResponse

_MS_PER_S = 1000


def render_call_started(config: CallConfig) -> pb.StreamingRecognizeResponse:
    """The first message of a call: the settings in force."""
    started = pb.CallStarted(call_id=config.info.call_id, config=_streaming_config(config))
    return pb.StreamingRecognizeResponse(call_started=started)


def render_event(
    event: SessionEvent, config: CallConfig, latency_s: float | None = None
) -> pb.StreamingRecognizeResponse:
    """One event of a session; `latency_s` is the finalization latency of a final."""
    if isinstance(event, RecognitionResult):
        return pb.StreamingRecognizeResponse(result=_result(event, config, latency_s))
    if isinstance(event, SpeechActivity):
        return pb.StreamingRecognizeResponse(speech_activity=_activity(event))
    if isinstance(event, AudioAcknowledged):
        return pb.StreamingRecognizeResponse(ack=pb.Ack(audio_offset=_duration(event.offset_ms)))
    if isinstance(event, SceneEvent):
        return pb.StreamingRecognizeResponse(scene=_scene(event))
    if isinstance(event, TurnEvent):
        return pb.StreamingRecognizeResponse(turn=_turn(event))
    return pb.StreamingRecognizeResponse(notice=_notice(event))


def render_draining(grace_s: float) -> pb.StreamingRecognizeResponse:
    """Tells a live call that the server shuts down."""
    notice = pb.Notice(
        code=pb.Notice.SERVER_DRAINING, message=f"the server is shutting down; the call may go on for {grace_s:g} s"
    )
    return pb.StreamingRecognizeResponse(notice=notice)


def render_recognized(
    results: Iterable[RecognitionResult], config: CallConfig, audio_duration_ms: int
) -> pb.RecognizeResponse:
    """The answer to a unary request."""
    ordered = sorted(results, key=lambda result: (result.result_start_ms, result.channel_tag))
    return pb.RecognizeResponse(
        results=[_result(result, config, None) for result in ordered], audio_duration=_duration(audio_duration_ms)
    )


def render_server_info(terms: Terms, version: str) -> pb.GetServerInfoResponse:
    """What this server is and can do."""
    limits = terms.limits
    return pb.GetServerInfoResponse(
        version=version,
        models=[
            pb.ModelInfo(
                name=info.model, language_codes=info.language_codes, precision=info.precision, device=info.device
            )
            for info in terms.models.values()
        ],
        limits=pb.Limits(
            max_message_bytes=limits.max_message_bytes,
            max_recognize_duration=_duration(round(limits.max_recognize_s * _MS_PER_S)),
            max_concurrent_calls=limits.max_concurrent_calls,
            max_channel_count=MAX_CHANNELS,
            sample_rates_hertz=SUPPORTED_SAMPLE_RATES_HZ,
        ),
    )


def _duration(duration_ms: int) -> Duration:
    duration = Duration()
    duration.FromMilliseconds(duration_ms)
    return duration


def _result(event: RecognitionResult, config: CallConfig, latency_s: float | None) -> pb.RecognitionResult:
    result = pb.RecognitionResult(
        result_id=event.result_id,
        alternatives=[_alternative(alternative, config) for alternative in event.alternatives],
        is_final=event.is_final,
        channel_tag=event.channel_tag,
        language_code=event.alternatives[0].language_code if event.alternatives else "",
        result_start_offset=_duration(event.result_start_ms),
        result_end_offset=_duration(event.result_end_ms),
    )
    if not event.is_final:
        result.stability = event.stability
        result.stable_length = event.stable_length
    if event.end_reason is not None:
        result.end_reason = END_REASONS.number(event.end_reason)  # type: ignore[assignment]
    if latency_s is not None:
        result.latency.CopyFrom(_duration(max(0, round(latency_s * _MS_PER_S))))
    return result


def _alternative(hypothesis: Hypothesis, config: CallConfig) -> pb.Alternative:
    wanted = config.word_times or config.word_confidences
    words = [_word(word, config) for word in hypothesis.words] if wanted else []
    return pb.Alternative(
        transcript=hypothesis.transcript,
        confidence=hypothesis.confidence,
        words=words,
        formatted_transcript=hypothesis.formatted_transcript,
    )


def _word(word: Word, config: CallConfig) -> pb.WordInfo:
    info = pb.WordInfo(word=word.text)
    if config.word_times:
        info.start_offset.CopyFrom(_duration(word.start_ms))
        info.end_offset.CopyFrom(_duration(word.end_ms))
    if config.word_confidences:
        info.confidence = word.confidence
    return info


def _activity(event: SpeechActivity) -> pb.SpeechActivity:
    return pb.SpeechActivity(
        kind=ACTIVITY_KINDS.number(event.kind),  # type: ignore[arg-type]
        channel_tag=event.channel_tag,
        offset=_duration(event.offset_ms),
    )


def _scene(event: SceneEvent) -> pb.Scene:
    return pb.Scene(
        kind=SCENE_KINDS.number(event.kind),  # type: ignore[arg-type]
        channel_tag=event.channel_tag,
        offset=_duration(event.offset_ms),
        duration=_duration(event.duration_ms),
        is_over=event.is_over,
        digit=event.digit,
    )


def _turn(event: TurnEvent) -> pb.Turn:
    return pb.Turn(
        kind=TURN_KINDS.number(event.kind),  # type: ignore[arg-type]
        channel_tag=event.channel_tag,
        offset=_duration(event.offset_ms),
        result_id=event.result_id,
        transcript=event.transcript,
    )


def _notice(event: SessionNotice) -> pb.Notice:
    code = NOTICE_CODES.number(event.code)
    return pb.Notice(code=code, message=event.message, channel_tag=event.channel_tag)  # type: ignore[arg-type]


def _streaming_config(config: CallConfig) -> pb.StreamingConfig:
    session, endpointing = config.session, config.session.endpointing
    return pb.StreamingConfig(
        config=_recognition_config(config),
        interim_results=session.interim.enabled,
        enable_speech_activity_events=session.speech_activity_events,
        enable_scene_events=session.scene_events,
        enable_turn_events=session.turn_events,
        endpointing=pb.EndpointingConfig(
            onset_ms=endpointing.onset_ms,
            hangover_ms=endpointing.hangover_ms,
            number_hangover_ms=endpointing.number_hangover_ms,
            max_segment_ms=endpointing.max_segment_ms,
            sensitivity=endpointing.sensitivity,
            pre_roll_ms=endpointing.pre_roll_ms,
            profile=PROFILES.number(endpointing.profile),  # type: ignore[arg-type]
        ),
        call=_call_info(config),
    )


def _recognition_config(config: CallConfig) -> pb.RecognitionConfig:
    session, hints = config.session, config.session.hints
    return pb.RecognitionConfig(
        encoding=ENCODINGS.number(session.audio_format.encoding),  # type: ignore[arg-type]
        sample_rate_hertz=session.audio_format.sample_rate_hz,
        audio_channel_count=session.audio_format.num_channels,
        language_code=hints.language_code,
        allowed_language_codes=hints.allowed_language_codes,
        model=config.model,
        task=TASKS.number(hints.task),  # type: ignore[arg-type]
        enable_word_time_offsets=config.word_times,
        enable_word_confidence=config.word_confidences,
        max_alternatives=hints.num_alternatives,
        denoise=DENOISING.number(session.denoising),  # type: ignore[arg-type]
        speech_contexts=render_contexts(hints.speech_contexts),
    )


def _call_info(config: CallConfig) -> pb.CallInfo:
    info = config.info
    message = pb.CallInfo(
        call_id=info.call_id, tenant=info.tenant, agent_id=info.agent_id, metadata=dict(info.metadata)
    )
    for tag, role in info.channel_roles.items():
        message.channel_roles[tag] = ROLES.number(role)  # type: ignore[assignment]
    if config.session.start_offset_ms:
        message.resume.audio_offset_ms = config.session.start_offset_ms
    return message
