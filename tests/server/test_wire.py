"""Requests and responses: everything that goes out comes back in, and nothing wrong comes in."""

import grpc
import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config import (
    SUPPORTED_SAMPLE_RATES_HZ,
    DenoisingMode,
    EndpointingConfig,
    EndpointingProfile,
    InterimConfig,
    SessionConfig,
    VadMode,
)
from pipeline.engines.base import EngineInfo
from pipeline.errors import InvalidConfigError
from pipeline.events import (
    ActivityKind,
    AudioAcknowledged,
    NoticeCode,
    RecognitionResult,
    SessionNotice,
    SpeechActivity,
)
from pipeline.profiles import PROFILES
from pipeline.types import AudioEncoding, AudioFormat, DecodeHints, EndReason, Hypothesis, SpeechContext, Task, Word
from server import wire
from server.messages import (
    Audio,
    CallConfig,
    CallDefaults,
    CallInfo,
    ChannelRole,
    Flush,
    Gap,
    KeepAlive,
    KeyPressed,
    Limits,
    Terms,
)
from server.wire.languages import language_subtag
from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.server import FLUSH, KEEP_ALIVE, audio, config, control, start

ENGLISH = EngineInfo(
    model="small", language_codes=("en",), precision="float32", device="cpu", max_audio_ms=30_000, max_alternatives=1
)
MANY = EngineInfo(
    model="big",
    language_codes=("fr", "en", "de"),
    precision="float32",
    device="cpu",
    max_audio_ms=30_000,
    can_translate=True,
    can_detect_language=True,
    max_alternatives=5,
)
DEFAULTS = CallDefaults(
    language_code="",
    denoising=DenoisingMode.MIX,
    vad=VadMode.ENERGY,
    endpointing=EndpointingConfig(hangover_ms=700),
    interim=InterimConfig(interval_ms=300),
)
LIMITS = Limits(max_message_bytes=10_000, max_recognize_s=60.0, max_concurrent_calls=3)
TERMS = Terms(models={"small": ENGLISH, "big": MANY}, defaults=DEFAULTS, limits=LIMITS)

plain_text = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=128)


speech_contexts = st.builds(
    SpeechContext,
    phrases=st.lists(
        st.from_regex(r"[A-Za-zÀ-ÖØ-ö]{1,40}( [a-z0-9]{1,9}){0,2}", fullmatch=True), min_size=1, max_size=4, unique=True
    ).map(tuple),
    boost=st.floats(0.125, 20, width=32),
)


@st.composite
def hints(draw: st.DrawFn) -> DecodeHints:
    language = draw(st.sampled_from(("auto", "fr", "en", "de")))
    allowed = draw(st.lists(st.sampled_from(("fr", "en", "de")), unique=True)) if language == "auto" else []
    return DecodeHints(
        language_code=language,
        allowed_language_codes=tuple(allowed),
        task=draw(st.sampled_from(Task)),
        num_alternatives=draw(st.integers(1, 5)),
        speech_contexts=tuple(draw(st.lists(speech_contexts, max_size=3))),
    )


endpointing_configs = st.builds(
    EndpointingConfig,
    profile=st.sampled_from(EndpointingProfile),
    onset_ms=st.integers(10, 1_000),
    hangover_ms=st.integers(100, 5_000),
    number_hangover_ms=st.integers(100, 5_000),
    pre_roll_ms=st.integers(200, 500),
    max_segment_ms=st.integers(5_000, 28_000),
    sensitivity=st.floats(0, 1, width=32),
)


@st.composite
def call_configs(draw: st.DrawFn) -> CallConfig:
    num_channels = draw(st.integers(1, 2))
    word_times, word_confidences = draw(st.booleans()), draw(st.booleans())
    decode_hints = draw(hints())
    session = SessionConfig(
        audio_format=AudioFormat(
            encoding=draw(st.sampled_from(AudioEncoding)),
            sample_rate_hz=draw(st.sampled_from(SUPPORTED_SAMPLE_RATES_HZ)),
            num_channels=num_channels,
        ),
        hints=DecodeHints(
            language_code=decode_hints.language_code,
            allowed_language_codes=decode_hints.allowed_language_codes,
            task=decode_hints.task,
            word_details=word_times or word_confidences,
            num_alternatives=decode_hints.num_alternatives,
            speech_contexts=decode_hints.speech_contexts,
        ),
        endpointing=draw(endpointing_configs),
        interim=InterimConfig(enabled=draw(st.booleans()), interval_ms=300),
        denoising=draw(st.sampled_from(DenoisingMode)),
        vad=VadMode.ENERGY,
        speech_activity_events=draw(st.booleans()),
        start_offset_ms=draw(st.integers(0, 86_400_000)),
    )
    info = CallInfo(
        call_id=draw(plain_text),
        tenant=draw(st.text(max_size=20)),
        agent_id=draw(st.text(max_size=20)),
        channel_roles=draw(st.dictionaries(st.integers(1, num_channels), st.sampled_from(ChannelRole))),
        metadata=draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)),
    )
    return CallConfig(session=session, model="big", info=info, word_times=word_times, word_confidences=word_confidences)


@given(call_configs())
def test_settings_in_force_say_all_and_come_back_the_same(call_config: CallConfig) -> None:
    started = wire.render_call_started(call_config).call_started
    assert started.call_id == call_config.info.call_id
    over_json = json_format.Parse(json_format.MessageToJson(started.config), pb.StreamingConfig())
    again = wire.parse_start(pb.StreamingRecognizeRequest(streaming_config=over_json), TERMS)
    assert again == call_config


words = st.builds(
    Word,
    text=st.text(max_size=10),
    start_ms=st.integers(0, 10**9),
    end_ms=st.integers(0, 10**9),
    confidence=st.floats(0, 1, width=32),
)
hypotheses = st.builds(
    Hypothesis,
    transcript=st.text(max_size=30),
    words=st.lists(words, max_size=3).map(tuple),
    confidence=st.floats(0, 1, width=32),
    language_code=st.sampled_from(("en", "de")),
)
results = st.builds(
    RecognitionResult,
    result_id=plain_text,
    channel_tag=st.integers(1, 2),
    alternatives=st.lists(hypotheses, max_size=2).map(tuple),
    is_final=st.booleans(),
    stability=st.floats(0, 1, width=32),
    stable_length=st.integers(0, 30),
    result_start_ms=st.integers(0, 10**9),
    result_end_ms=st.integers(0, 10**9),
    speech_start_ms=st.integers(0, 10**9),
    speech_end_ms=st.integers(0, 10**9),
    end_reason=st.none() | st.sampled_from(EndReason),
)
BASE = wire.parse_start(start(), TERMS)
DETAILED = wire.parse_start(start(config(enable_word_time_offsets=True, enable_word_confidence=True)), TERMS)


@given(results, st.none() | st.floats(0, 60))
def test_results_lose_nothing_on_the_wire(result: RecognitionResult, latency_s: float | None) -> None:
    rendered = wire.render_event(result, DETAILED, latency_s)
    message = pb.StreamingRecognizeResponse.FromString(rendered.SerializeToString()).result
    assert (message.result_id, message.channel_tag, message.is_final) == (
        result.result_id,
        result.channel_tag,
        result.is_final,
    )
    assert message.result_start_offset.ToMilliseconds() == result.result_start_ms
    assert message.result_end_offset.ToMilliseconds() == result.result_end_ms
    assert (message.stability, message.stable_length) == (
        (0, 0) if result.is_final else (result.stability, result.stable_length)
    )
    reason = "END_REASON_UNSPECIFIED" if result.end_reason is None else result.end_reason.value
    assert pb.RecognitionResult.EndReason.Name(message.end_reason) == reason
    assert message.HasField("latency") == (latency_s is not None)
    if latency_s is not None:
        assert message.latency.ToMilliseconds() == round(latency_s * 1000)
    assert [_hypothesis(alternative, message.language_code) for alternative in message.alternatives] == [
        _hypothesis(alternative, message.language_code) for alternative in wire_view(result)
    ]


def wire_view(result: RecognitionResult) -> list[pb.Alternative]:
    """What the alternatives should look like, written down independently."""
    return [
        pb.Alternative(
            transcript=h.transcript,
            confidence=h.confidence,
            words=[
                pb.WordInfo(
                    word=w.text,
                    start_offset={"seconds": w.start_ms // 1000, "nanos": w.start_ms % 1000 * 1_000_000},
                    end_offset={"seconds": w.end_ms // 1000, "nanos": w.end_ms % 1000 * 1_000_000},
                    confidence=w.confidence,
                )
                for w in h.words
            ],
        )
        for h in result.alternatives
    ]


def _hypothesis(alternative: pb.Alternative, language_code: str) -> tuple[str, bytes]:
    return language_code, alternative.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    ("times", "confidences"), [(False, False), (True, False), (False, True), (True, True)], ids=str
)
def test_words_carry_what_was_asked_for(times: bool, confidences: bool) -> None:
    call_config = wire.parse_start(
        start(config(enable_word_time_offsets=times, enable_word_confidence=confidences)), TERMS
    )
    word = Word(text="yes", start_ms=10, end_ms=20, confidence=0.5)
    hypothesis = Hypothesis(transcript="yes", words=(word,), confidence=0.5, language_code="en")
    result = RecognitionResult(
        result_id="1-1",
        channel_tag=1,
        alternatives=(hypothesis,),
        is_final=True,
        stability=1.0,
        stable_length=3,
        result_start_ms=0,
        result_end_ms=20,
        speech_start_ms=10,
        speech_end_ms=20,
        end_reason=EndReason.FLUSH,
    )
    shown = wire.render_event(result, call_config).result.alternatives[0].words
    assert call_config.session.hints.word_details == (times or confidences)
    assert len(shown) == (1 if times or confidences else 0)
    assert all(w.HasField("start_offset") == times and bool(w.confidence) == confidences for w in shown)


def test_other_events() -> None:
    activity = SpeechActivity(kind=ActivityKind.END, channel_tag=2, offset_ms=1_250)
    shown = wire.render_event(activity, BASE).speech_activity
    assert (shown.kind, shown.channel_tag, shown.offset.ToMilliseconds()) == (pb.SpeechActivity.END, 2, 1_250)
    assert wire.render_event(AudioAcknowledged(offset_ms=990), BASE).ack.audio_offset.ToMilliseconds() == 990
    for code in NoticeCode:
        notice = wire.render_event(SessionNotice(code=code, message="m", channel_tag=1), BASE).notice
        assert (pb.Notice.Code.Name(notice.code), notice.message, notice.channel_tag) == (code.value, "m", 1)
    assert wire.render_draining(2.5).notice.code == pb.Notice.SERVER_DRAINING


def test_defaults_are_the_servers() -> None:
    session = BASE.session
    assert BASE.model == "small"
    assert session.hints.language_code == "en"
    assert session.audio_format.num_channels == 1
    assert (session.denoising, session.vad) == (DenoisingMode.MIX, VadMode.ENERGY)
    assert session.endpointing == DEFAULTS.endpointing
    assert session.interim == InterimConfig(enabled=False, interval_ms=300)
    assert wire.parse_start(start(config(model="big")), TERMS).session.hints.language_code == "fr"
    assert wire.parse_start(start(), TERMS, "from-header").info.call_id == "from-header"
    own = start(call=pb.CallInfo(call_id="own"))
    assert wire.parse_start(own, TERMS, "from-header").info.call_id == "own"
    assert len({wire.parse_start(start(), TERMS).info.call_id for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("tag", "code"),
    [("en", "en"), ("en-US", "en"), ("EN_gb", "en"), ("zh-Hant-TW", "zh"), ("cmn-Hans-CN", "zh"), ("nb-NO", "no")],
)
def test_bcp_47(tag: str, code: str) -> None:
    assert language_subtag(tag) == code


int32s = st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 5_000)
int64s = st.integers(-(2**63), 2**63 - 1)
any_config = st.builds(
    pb.RecognitionConfig,
    encoding=int32s,
    sample_rate_hertz=int32s | st.sampled_from(SUPPORTED_SAMPLE_RATES_HZ),
    audio_channel_count=int32s,
    language_code=st.text(max_size=8) | st.just("auto"),
    allowed_language_codes=st.lists(st.text(max_size=5), max_size=3),
    model=st.sampled_from(("", "small", "big", "other")),
    task=int32s,
    max_alternatives=int32s,
    denoise=int32s,
)
any_start = st.builds(
    lambda recognition, endpointing, offset_ms, roles, call_id: start(
        recognition,
        endpointing=endpointing,
        call=pb.CallInfo(call_id=call_id, channel_roles=roles, resume=pb.CallInfo.Resume(audio_offset_ms=offset_ms)),
    ),
    any_config | st.just(config()),
    st.builds(
        pb.EndpointingConfig,
        onset_ms=int32s,
        hangover_ms=int32s,
        max_segment_ms=int32s,
        sensitivity=st.floats(width=32),
        pre_roll_ms=int32s,
        profile=int32s,
    )
    | st.just(pb.EndpointingConfig()),
    int64s | st.just(0),
    st.dictionaries(int32s, int32s, max_size=2),
    st.text(max_size=200),
)


@given(any_start)
def test_any_start_is_taken_or_refused_for_a_named_field(request_: pb.StreamingRecognizeRequest) -> None:
    try:
        call_config = wire.parse_start(request_, TERMS)
    except InvalidConfigError as caught:
        error = caught
    else:
        assert wire.render_call_started(call_config).call_started.config.config.model in TERMS.models
        return
    assert error.field.split(".")[0] in ("config", "endpointing", "call", "streaming_config")
    assert wire.status_of(error).code is grpc.StatusCode.INVALID_ARGUMENT


WRONG_STARTS = [
    (None, "streaming_config", ["nothing"]),
    (audio(b"\0" * 10), "streaming_config", ["audio_content", "first"]),
    (KEEP_ALIVE, "streaming_config", ["control"]),
    (pb.StreamingRecognizeRequest(), "streaming_config", ["empty"]),
    (start(pb.RecognitionConfig(sample_rate_hertz=8000)), "config.encoding", ["not set", "LINEAR16, MULAW, ALAW"]),
    (start(config(encoding=77)), "config.encoding", ["77", "LINEAR16"]),
    (start(config(sample_rate_hertz=0)), "config.sample_rate_hertz", ["0 is not", "8000", "48000"]),
    (start(config(sample_rate_hertz=-8000)), "config.sample_rate_hertz", ["-8000"]),
    (start(config(audio_channel_count=7)), "config.audio_channel_count", ["7", "1 to 2"]),
    (start(config(audio_channel_count=-1)), "config.audio_channel_count", ["-1"]),
    (start(config(model="huge")), "config.model", ["'huge'", "small, big"]),
    (start(config(model="h" * 5000)), "config.model", ["hhh..."]),
    (start(config(language_code="xx-XX")), "config.language_code", ["'xx-XX'", "small", "use one of en"]),
    (start(config(language_code="auto")), "config.language_code", ["small", "use one of en"]),
    (
        start(config(model="big", language_code="auto", allowed_language_codes=["de", "xx"])),
        "config.allowed_language_codes",
        ["'xx'", "fr, en, de"],
    ),
    (
        start(config(model="big", language_code="de", allowed_language_codes=["de"])),
        "config.allowed_language_codes",
        ["auto"],
    ),
    (start(config(task=9)), "config.task", ["9", "TRANSLATE"]),
    (start(config(task="TRANSLATE")), "config.task", ["small", "TRANSCRIBE"]),
    (start(config(denoise=9)), "config.denoise", ["9", "DENOISE_OFF"]),
    (start(config(max_alternatives=2)), "config.max_alternatives", ["2", "0 to 1", "small"]),
    (start(config(max_alternatives=-1)), "config.max_alternatives", ["-1"]),
    (start(endpointing=pb.EndpointingConfig(onset_ms=5)), "endpointing.onset_ms", ["5", "10 to 1000"]),
    (start(endpointing=pb.EndpointingConfig(profile=9)), "endpointing.profile", ["9", "DICTATION"]),
    (start(endpointing=pb.EndpointingConfig(hangover_ms=99)), "endpointing.hangover_ms", ["99", "100 to 5000"]),
    (start(endpointing=pb.EndpointingConfig(pre_roll_ms=501)), "endpointing.pre_roll_ms", ["501", "200 to 500"]),
    (start(endpointing=pb.EndpointingConfig(max_segment_ms=-1)), "endpointing.max_segment_ms", ["-1", "5000 to 28000"]),
    (start(endpointing=pb.EndpointingConfig(sensitivity=1.5)), "endpointing.sensitivity", ["1.5", "0.0 to 1.0"]),
    (start(endpointing=pb.EndpointingConfig(sensitivity=float("nan"))), "endpointing.sensitivity", ["nan"]),
    (start(call=pb.CallInfo(call_id="x" * 129)), "call.call_id", ["128"]),
    (start(call=pb.CallInfo(call_id="né")), "call.call_id", ["ASCII"]),
    (start(call=pb.CallInfo(channel_roles={2: pb.CallInfo.AGENT})), "call.channel_roles", ["2", "1 to 1"]),
    (start(call=pb.CallInfo(channel_roles={1: 9})), "call.channel_roles", ["9", "CUSTOMER"]),
    (
        start(call=pb.CallInfo(resume=pb.CallInfo.Resume(audio_offset_ms=-1))),
        "call.resume.audio_offset_ms",
        ["-1", "0 to"],
    ),
    (start(call=pb.CallInfo(metadata={"k": "v" * 10_000})), "streaming_config", ["10000 bytes"]),
]


@pytest.mark.parametrize(("request_", "field", "parts"), WRONG_STARTS)
def test_wrong_starts_name_field_value_and_limit(
    request_: pb.StreamingRecognizeRequest | None, field: str, parts: list[str]
) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        wire.parse_start(request_, TERMS)
    assert caught.value.field == field
    assert all(part in caught.value.message for part in parts), caught.value.message
    assert len(caught.value.message) < 400


def test_later_messages() -> None:
    assert wire.parse_message(audio(b"ab"), TERMS) == Audio(b"ab")
    assert wire.parse_message(audio(b""), TERMS) == Audio(b"")
    assert wire.parse_message(FLUSH, TERMS) == Flush()
    assert wire.parse_message(KEEP_ALIVE, TERMS) == KeepAlive()
    assert wire.parse_message(control(gap=pb.Control.Gap(duration_ms=70)), TERMS) == Gap(70)
    key = control(dtmf=pb.Control.Dtmf(digit="a", channel_tag=2))
    assert wire.parse_message(key, TERMS) == KeyPressed("A", 2)


WRONG_LATER = [
    (start(), "streaming_config", ["twice"]),
    (pb.StreamingRecognizeRequest(), "request", ["empty"]),
    (control(), "control", ["empty", "flush"]),
    (control(dtmf=pb.Control.Dtmf(digit="", channel_tag=1)), "control.dtmf.digit", ["''", "0 to 9, *, #, A to D"]),
    (control(dtmf=pb.Control.Dtmf(digit="12", channel_tag=1)), "control.dtmf.digit", ["'12'", "one of"]),
    (control(dtmf=pb.Control.Dtmf(digit="x" * 999, channel_tag=1)), "control.dtmf.digit", ["xxx..."]),
    (control(gap=pb.Control.Gap(duration_ms=-5)), "control.gap.duration_ms", ["-5", "0 to 3600000"]),
    (control(gap=pb.Control.Gap(duration_ms=3_600_001)), "control.gap.duration_ms", ["3600001"]),
    (audio(bytes(10_001)), "audio_content", ["10004 bytes", "10000 bytes"]),
]


@pytest.mark.parametrize(("request_", "field", "parts"), WRONG_LATER)
def test_wrong_later_messages(request_: pb.StreamingRecognizeRequest, field: str, parts: list[str]) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        wire.parse_message(request_, TERMS)
    assert caught.value.field == field
    assert all(part in caught.value.message for part in parts), caught.value.message


def test_recognize_has_no_interims() -> None:
    request = pb.RecognizeRequest(
        config=config(model="big"), audio_content=b"abc", endpointing=pb.EndpointingConfig(hangover_ms=300)
    )
    call_config, data = wire.parse_recognize(request, TERMS)
    assert data == b"abc"
    assert not call_config.session.interim.enabled
    assert call_config.session.endpointing.hangover_ms == 300
    with pytest.raises(InvalidConfigError, match="10000 bytes"):
        wire.parse_recognize(pb.RecognizeRequest(config=config(), audio_content=bytes(10_001)), TERMS)


def test_a_profile_sets_the_durations_that_are_not_given():
    asked = pb.EndpointingConfig(profile=pb.EndpointingConfig.DICTATION)
    endpointing = wire.parse_start(start(endpointing=asked), TERMS).session.endpointing
    assert endpointing.profile is EndpointingProfile.DICTATION
    assert endpointing.hangover_ms == PROFILES[EndpointingProfile.DICTATION]["hangover_ms"]
    assert endpointing.onset_ms == TERMS.defaults.endpointing.onset_ms


def test_the_servers_own_profile_keeps_what_the_server_sets():
    asked = pb.EndpointingConfig(profile=pb.EndpointingConfig.CONVERSATION)
    assert wire.parse_start(start(endpointing=asked), TERMS).session.endpointing == TERMS.defaults.endpointing


def test_formatted_text_is_sent_beside_the_words():
    words = Hypothesis(transcript="four two", formatted_transcript="42", confidence=0.5, language_code="en")
    final = RecognitionResult(
        result_id="1-1",
        channel_tag=1,
        alternatives=(words,),
        is_final=True,
        stability=1.0,
        stable_length=8,
        result_start_ms=0,
        result_end_ms=900,
        speech_start_ms=300,
        speech_end_ms=600,
        end_reason=EndReason.SILENCE,
    )
    (shown,) = wire.render_event(final, BASE).result.alternatives
    assert (shown.transcript, shown.formatted_transcript) == ("four two", "42")
