"""Requests in: protobuf messages become checked settings and call messages.

Every complaint is an InvalidConfigError that names the public field, the value, the limit and the remedy.
"""

from dataclasses import replace
from uuid import uuid4

from pipeline.config import DenoisingMode, EndpointingConfig, HintsUpdate, SessionConfig
from pipeline.engines.base import EngineInfo
from pipeline.errors import InvalidConfigError
from pipeline.profiles import with_profile
from pipeline.scene.presses import ALL_DIGITS
from pipeline.types import AUTO_LANGUAGE, AudioFormat, DecodeHints, Task
from server.messages import Audio, CallConfig, CallInfo, CallMessage, Flush, Gap, KeepAlive, KeyPressed, Terms, Update
from server.wire.contexts import parse_contexts
from server.wire.languages import language_subtag
from server.wire.tables import DENOISING, ENCODINGS, PROFILES, ROLES, TASKS
from talkpath.speech.v1 import speech_pb2 as pb

StreamingRequest = pb.StreamingRecognizeRequest
UnaryRequest = pb.RecognizeRequest

MAX_GAP_MS = 3_600_000
"""One message may skip an hour; a longer hold is several messages."""
MAX_RESUME_OFFSET_MS = 7 * 24 * 3_600_000
MAX_CALL_ID_CHARS = 128
"""It travels in a header."""
_SHOWN_CHARS = 60
_ENDPOINTING_FIELDS = ("onset_ms", "hangover_ms", "number_hangover_ms", "max_segment_ms", "pre_roll_ms")
_PUBLIC_FIELDS = {
    "sample_rate_hertz": "config.sample_rate_hertz",
    "audio_channel_count": "config.audio_channel_count",
}


def parse_start(request: pb.StreamingRecognizeRequest | None, terms: Terms, call_id: str = "") -> CallConfig:
    """Takes the first message of a call; None when the caller half-closed before one.

    Args:
        request: the message.
        terms: what the server offers.
        call_id: used when the message brings none; empty makes one.
    """
    if request is None or request.WhichOneof("request") != "streaming_config":
        got = "nothing" if request is None else request.WhichOneof("request") or "an empty message"
        raise InvalidConfigError("streaming_config", f"the call began with {got}; send streaming_config first")
    _check_size("streaming_config", request.ByteSize(), terms)
    message = request.streaming_config
    config = _call_config(message.config, message.endpointing, terms)
    info = _call_info(message.call, config.session.audio_format.num_channels, call_id)
    session = replace(
        config.session,
        interim=replace(terms.defaults.interim, enabled=message.interim_results),
        speech_activity_events=message.enable_speech_activity_events,
        scene_events=message.enable_scene_events,
        turn_events=message.enable_turn_events,
        start_offset_ms=_resume_offset_ms(message.call),
    )
    return replace(config, session=session, info=info)


def parse_message(request: pb.StreamingRecognizeRequest, terms: Terms, config: CallConfig | None = None) -> CallMessage:
    """Takes any later message of a call; an update is checked against the model of its `config`."""
    kind = request.WhichOneof("request")
    if kind == "audio_content":
        _check_size("audio_content", request.ByteSize(), terms)
        return Audio(request.audio_content)
    if kind == "control":
        info = terms.models[config.model] if config else next(iter(terms.models.values()))
        return _control(request.control, info, terms)
    if kind == "streaming_config":
        raise InvalidConfigError("streaming_config", "was sent twice; send it once, as the first message")
    raise InvalidConfigError("request", "is empty; send audio_content or control")


def parse_recognize(request: pb.RecognizeRequest, terms: Terms, call_id: str = "") -> tuple[CallConfig, bytes]:
    """Takes a unary request: its settings, without interims, and its audio."""
    _check_size("audio_content", request.ByteSize(), terms)
    config = _call_config(request.config, request.endpointing, terms)
    session = replace(config.session, interim=replace(terms.defaults.interim, enabled=False))
    info = _call_info(pb.CallInfo(), config.session.audio_format.num_channels, call_id)
    return replace(config, session=session, info=info), request.audio_content


def _check_size(field: str, size_bytes: int, terms: Terms) -> None:
    limit_bytes = terms.limits.max_message_bytes
    if size_bytes > limit_bytes:
        raise InvalidConfigError(
            field, f"a message of {size_bytes} bytes exceeds the limit of {limit_bytes} bytes; send smaller chunks"
        )


def _control(message: pb.Control, info: EngineInfo, terms: Terms) -> CallMessage:
    kind = message.WhichOneof("control")
    if kind == "flush":
        return Flush()
    if kind == "keep_alive":
        return KeepAlive()
    if kind == "gap":
        duration_ms = message.gap.duration_ms
        if not 0 <= duration_ms <= MAX_GAP_MS:
            raise InvalidConfigError(
                "control.gap.duration_ms", f"{duration_ms} is outside 0 to {MAX_GAP_MS}; send a longer gap in parts"
            )
        return Gap(duration_ms)
    if kind == "dtmf":
        return _key(message.dtmf)
    if kind == "update":
        return Update(_hints_update(message.update, info, terms))
    raise InvalidConfigError("control", "is empty; set flush, keep_alive, gap, dtmf or update")


def _key(message: pb.Control.Dtmf) -> KeyPressed:
    digit = message.digit.upper()
    if digit not in ALL_DIGITS:
        raise InvalidConfigError(
            "control.dtmf.digit", f"{_shown(message.digit)} is no key; send one of 0 to 9, *, #, A to D a message"
        )
    return KeyPressed(digit, message.channel_tag)


def _hints_update(message: pb.Control.Update, info: EngineInfo, terms: Terms) -> HintsUpdate:
    """The one place where an update becomes hints: what is added to HintsUpdate is read here."""
    field = "control.update.speech_contexts"
    if message.speech_contexts and not message.replace_speech_contexts:
        raise InvalidConfigError(field, "would replace those before; set replace_speech_contexts, or leave them out")
    if not (message.language_code or message.replace_speech_contexts):
        raise InvalidConfigError("control.update", "is empty; set language_code or replace_speech_contexts")
    language = _language(message.language_code, info, "control.update.language_code") if message.language_code else None
    contexts = parse_contexts(field, message.speech_contexts, terms.defaults.boost)
    return HintsUpdate(language_code=language, speech_contexts=contexts if message.replace_speech_contexts else None)


def _call_config(message: pb.RecognitionConfig, endpointing: pb.EndpointingConfig, terms: Terms) -> CallConfig:
    encoding = ENCODINGS.value("config.encoding", message.encoding)
    info = _model(message.model, terms)
    try:
        session = SessionConfig(
            audio_format=AudioFormat(
                encoding=encoding,
                sample_rate_hz=message.sample_rate_hertz,
                num_channels=message.audio_channel_count or 1,
            ),
            hints=_hints(message, info, terms),
            endpointing=_endpointing(endpointing, terms.defaults.endpointing),
            denoising=_denoising(message, terms),
            vad=terms.defaults.vad,
            silence_after_ms=terms.defaults.silence_after_ms,
        )
    except InvalidConfigError as error:
        raise InvalidConfigError(_PUBLIC_FIELDS.get(error.field, error.field), error.message) from None
    return CallConfig(
        session=session,
        model=info.model,
        info=CallInfo(call_id=""),
        word_times=message.enable_word_time_offsets,
        word_confidences=message.enable_word_confidence,
    )


def _model(name: str, terms: Terms) -> EngineInfo:
    if not name:
        return next(iter(terms.models.values()))
    if name not in terms.models:
        loaded = ", ".join(terms.models)
        raise InvalidConfigError(
            "config.model", f"{_shown(name)} is not loaded; use one of {loaded}, or leave it empty"
        )
    return terms.models[name]


def _hints(message: pb.RecognitionConfig, info: EngineInfo, terms: Terms) -> DecodeHints:
    language = _language(message.language_code or terms.defaults.language_code, info)
    return DecodeHints(
        language_code=language,
        allowed_language_codes=_allowed_languages(message, language, info),
        task=_task(message, info),
        word_details=message.enable_word_time_offsets or message.enable_word_confidence,
        num_alternatives=_num_alternatives(message, info),
        speech_contexts=parse_contexts("config.speech_contexts", message.speech_contexts, terms.defaults.boost),
    )


def _language(code: str, info: EngineInfo, field: str = "config.language_code") -> str:
    if not code:
        return info.language_codes[0]
    if code.lower() == AUTO_LANGUAGE:
        if not info.can_detect_language:
            known = ", ".join(info.language_codes)
            raise InvalidConfigError(field, f"{info.model} cannot detect languages; use one of {known}")
        return AUTO_LANGUAGE
    return _known_language(field, code, info)


def _known_language(field: str, code: str, info: EngineInfo) -> str:
    language = language_subtag(code)
    if language not in info.language_codes:
        known = ", ".join(info.language_codes)
        raise InvalidConfigError(field, f"{_shown(code)} is not known to {info.model}; use one of {known}")
    return language


def _allowed_languages(message: pb.RecognitionConfig, language: str, info: EngineInfo) -> tuple[str, ...]:
    field = "config.allowed_language_codes"
    if message.allowed_language_codes and language != AUTO_LANGUAGE:
        raise InvalidConfigError(
            field, f"goes with language_code auto only, not with {language}; leave one of them out"
        )
    codes = [_known_language(field, code, info) for code in message.allowed_language_codes]
    return tuple(dict.fromkeys(codes))


def _task(message: pb.RecognitionConfig, info: EngineInfo) -> Task:
    if message.task == pb.RecognitionConfig.TASK_UNSPECIFIED:
        return Task.TRANSCRIBE
    task = TASKS.value("config.task", message.task)
    if task is Task.TRANSLATE and not info.can_translate:
        raise InvalidConfigError(
            "config.task", f"{info.model} cannot TRANSLATE; use TRANSCRIBE or a multilingual model"
        )
    return task


def _num_alternatives(message: pb.RecognitionConfig, info: EngineInfo) -> int:
    wanted = message.max_alternatives
    if not 0 <= wanted <= info.max_alternatives:
        raise InvalidConfigError(
            "config.max_alternatives", f"{wanted} is outside 0 to {info.max_alternatives}, the limit of {info.model}"
        )
    return wanted or 1


def _denoising(message: pb.RecognitionConfig, terms: Terms) -> DenoisingMode:
    if message.denoise == pb.RecognitionConfig.DENOISE_DEFAULT:
        return terms.defaults.denoising
    return DENOISING.value("config.denoise", message.denoise)


def _endpointing(message: pb.EndpointingConfig, defaults: EndpointingConfig) -> EndpointingConfig:
    changes: dict[str, float] = {name: value for name in _ENDPOINTING_FIELDS if (value := getattr(message, name))}
    if message.HasField("sensitivity"):
        changes["sensitivity"] = message.sensitivity
    if message.profile == pb.EndpointingConfig.PROFILE_UNSPECIFIED:
        return replace(defaults, **changes)  # type: ignore[arg-type]  # the names are those of the fields
    profile = PROFILES.value("endpointing.profile", message.profile)
    if profile is defaults.profile:
        return replace(defaults, **changes)  # type: ignore[arg-type]
    return with_profile(defaults, profile, changes)


def _call_info(message: pb.CallInfo, num_channels: int, fallback_call_id: str) -> CallInfo:
    for tag in message.channel_roles:
        if not 1 <= tag <= num_channels:
            raise InvalidConfigError("call.channel_roles", f"channel_tag {tag} is outside 1 to {num_channels}")
    return CallInfo(
        call_id=_call_id(message.call_id or fallback_call_id),
        tenant=message.tenant,
        agent_id=message.agent_id,
        channel_roles={
            tag: ROLES.value("call.channel_roles", role) for tag, role in sorted(message.channel_roles.items())
        },
        metadata=dict(message.metadata),
    )


def _call_id(call_id: str) -> str:
    if not call_id:
        return uuid4().hex
    if len(call_id) > MAX_CALL_ID_CHARS or not (call_id.isascii() and call_id.isprintable()):
        raise InvalidConfigError(
            "call.call_id", f"{_shown(call_id)} is not 1 to {MAX_CALL_ID_CHARS} printable ASCII characters; shorten it"
        )
    return call_id


def _resume_offset_ms(message: pb.CallInfo) -> int:
    offset_ms = message.resume.audio_offset_ms
    if not 0 <= offset_ms <= MAX_RESUME_OFFSET_MS:
        raise InvalidConfigError(
            "call.resume.audio_offset_ms", f"{offset_ms} is outside 0 to {MAX_RESUME_OFFSET_MS}; use the last ack's"
        )
    return offset_ms


def _shown(text: str) -> str:
    """A caller's own words in an error: a status travels in a header of limited size."""
    return repr(text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}...")
