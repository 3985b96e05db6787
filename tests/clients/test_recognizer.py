import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2

from clients.errors import FieldViolation, RecognitionError
from clients.recognizer import MESSAGE_OVERHEAD_BYTES, Recognizer
from clients.types import (
    Ack,
    ActivityKind,
    CallSettings,
    CallStarted,
    ChannelRole,
    Denoise,
    Encoding,
    Endpointing,
    EndReason,
    Notice,
    NoticeCode,
    Profile,
    Result,
    SpeechActivity,
    SpeechContext,
    Task,
)
from clients.wire import WIRE_FORMAT
from talkpath.speech.v1 import speech_pb2 as pb
from tests.clients.fake_server import (
    FakeSpeech,
    Request,
    Response,
    abort_with,
    bad_request,
    ms,
    result,
    script_server,
    serving,
)

SETTINGS = CallSettings(sample_rate_hz=8000)
SECOND = bytes(16_000)
"""One second of silence as 8 kHz LINEAR16."""


def behaving(behaviour) -> FakeSpeech:
    return FakeSpeech(lambda: behaviour)


async def test_events_come_typed_and_in_order():
    async with serving(script_server({1: ["hello there", "good bye"]})) as address, Recognizer(address) as recognizer:
        events = [event async for event in recognizer.stream([SECOND, SECOND], SETTINGS)]
    assert [type(event) for event in events] == [
        CallStarted,
        *[SpeechActivity, Result, Result, SpeechActivity, Result] * 2,
        Ack,
    ]
    results = [event for event in events if isinstance(event, Result)]
    assert [(r.transcript, r.is_final) for r in results] == [
        ("hello", False),
        ("hello there", False),
        ("hello there", True),
        ("good", False),
        ("good bye", False),
        ("good bye", True),
    ]
    final = results[2]
    assert (final.result_id, final.start_ms, final.end_ms) == ("1-0", 0, 1000)
    assert (final.end_reason, final.latency_ms, final.language_code) == (EndReason.SILENCE, 200.0, "en")
    assert (results[1].stable_length, results[1].end_reason, results[1].latency_ms) == (5, None, None)
    assert events[1] == SpeechActivity(kind=ActivityKind.BEGIN, channel_tag=1, offset_ms=100)
    assert events[-1] == Ack(offset_ms=2000)


async def test_settings_arrive_and_come_back_unchanged():
    settings = CallSettings(
        encoding=Encoding.ALAW,
        sample_rate_hz=16_000,
        num_channels=2,
        language_code="auto",
        allowed_language_codes=("en", "es"),
        model="base",
        task=Task.TRANSLATE,
        word_time_offsets=True,
        word_confidence=True,
        max_alternatives=3,
        denoise=Denoise.MIX,
        endpointing=Endpointing(
            profile=Profile.SHORT_ANSWER,
            onset_ms=50,
            hangover_ms=700,
            number_hangover_ms=1_200,
            max_segment_ms=9000,
            pre_roll_ms=250,
            sensitivity=0.0,
        ),
        speech_contexts=(SpeechContext(phrases=("Ada", "Fennimar Plus"), boost=2.5), SpeechContext(phrases=("Ån",))),
        interim_results=True,
        speech_activity=False,
        call_id="c-1",
        tenant="acme",
        agent_id="a-7",
        channel_roles={1: ChannelRole.AGENT, 2: ChannelRole.CUSTOMER},
        metadata={"queue": "sales"},
        resume_offset_ms=0,
    )
    servicer = script_server({})
    async with serving(servicer) as address, Recognizer(address) as recognizer:
        events = [event async for event in recognizer.stream([], settings)]
    assert events[0] == CallStarted(call_id="c-1", settings=settings)
    sent = servicer.requests[0][0].streaming_config
    assert sent.config.task == pb.RecognitionConfig.TRANSLATE
    assert sent.config.denoise == pb.RecognitionConfig.DENOISE_MIX
    assert sent.endpointing.HasField("sensitivity")
    assert sent.call.channel_roles[2] == pb.CallInfo.CUSTOMER
    assert sent.call.HasField("resume")


async def test_defaults_stay_unset_on_the_wire():
    servicer = script_server({})
    async with serving(servicer) as address, Recognizer(address) as recognizer:
        events = [event async for event in recognizer.stream([], SETTINGS)]
    sent = servicer.requests[0][0].streaming_config
    assert not sent.endpointing.HasField("sensitivity")
    assert sent.endpointing.hangover_ms == 0
    assert not sent.call.HasField("resume")
    assert isinstance(events[0], CallStarted)
    assert events[0].call_id == "made-by-server"
    assert events[0].settings.endpointing == Endpointing()
    assert events[0].settings.resume_offset_ms is None


async def test_audio_larger_than_a_message_is_split_at_the_servers_limit():
    servicer = script_server({})
    servicer.max_message_bytes = 5_000
    audio = bytes(range(256)) * 100
    async with serving(servicer) as address, Recognizer(address) as recognizer:
        async with recognizer.call(SETTINGS) as call:
            await call.send_audio(audio)
            await call.half_close()
            assert [event async for event in call][-1] == Ack(offset_ms=len(audio) / 16)
        async with recognizer.call(SETTINGS) as call:
            await call.half_close()
            [event async for event in call]
    pieces = [request.audio_content for request in servicer.requests[0][1:]]
    assert b"".join(pieces) == audio
    assert {len(piece) for piece in pieces[:-1]} == {5_000 - MESSAGE_OVERHEAD_BYTES}
    assert servicer.info_requests == 1


async def test_controls_reach_the_server_in_their_place():
    servicer = script_server({})
    async with serving(servicer) as address, Recognizer(address) as recognizer, recognizer.call(SETTINGS) as call:
        await call.send_audio(SECOND)
        await call.send_gap_ms(250)
        await call.send_dtmf("5", channel_tag=2)
        await call.flush()
        await call.keep_alive()
        await call.update(language_code="de-DE")
        await call.update(speech_contexts=[SpeechContext(phrases=("Szymborski",))])
        await call.half_close()
        await call.half_close()
        [event async for event in call]
        assert call.sent_ms == 1250
        assert call.acknowledged_ms == 1000
        assert call.started is not None
    kinds = [request.WhichOneof("request") for request in servicer.requests[0]]
    controls = [request.control.WhichOneof("control") for request in servicer.requests[0][2:]]
    assert kinds == ["streaming_config", "audio_content", *["control"] * 6]
    assert controls == ["gap", "dtmf", "flush", "keep_alive", "update", "update"]
    assert (servicer.requests[0][3].control.dtmf.digit, servicer.requests[0][3].control.dtmf.channel_tag) == ("5", 2)
    assert servicer.requests[0][2].control.gap.duration_ms == 250
    language, contexts = (request.control.update for request in servicer.requests[0][6:8])
    assert (language.language_code, language.replace_speech_contexts) == ("de-DE", False)
    assert [list(context.phrases) for context in contexts.speech_contexts] == [["Szymborski"]]
    assert contexts.replace_speech_contexts


async def test_a_resumed_call_counts_on_from_where_the_earlier_one_ended():
    settings = CallSettings(sample_rate_hz=8000, resume_offset_ms=2_500)
    async with (
        serving(script_server({})) as address,
        Recognizer(address) as recognizer,
        recognizer.call(settings) as call,
    ):
        await call.send_audio(SECOND)
        assert call.sent_ms == 3_500


async def test_sending_after_half_close_is_an_error_of_the_caller():
    async with (
        serving(script_server({})) as address,
        Recognizer(address) as recognizer,
        recognizer.call(SETTINGS) as call,
    ):
        await call.half_close()
        with pytest.raises(RuntimeError, match="half-closed"):
            await call.send_audio(SECOND)


async def test_a_call_that_was_not_entered_says_so():
    async with Recognizer("127.0.0.1:1") as recognizer:
        with pytest.raises(RuntimeError, match="async with"):
            await recognizer.call(SETTINGS).send_audio(SECOND)


async def refuse(requests: AsyncIterator[Request], context: grpc.aio.ServicerContext) -> AsyncIterator[Response]:
    await anext(requests)
    retry = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000))
    violation = bad_request("config.model", "'big' is not loaded; use tiny.en")
    await abort_with(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "no room", retry, violation)
    yield Response()


async def test_a_refusal_carries_status_fields_and_retry_time():
    async with serving(behaving(refuse)) as address, Recognizer(address) as recognizer:
        with pytest.raises(RecognitionError) as caught:
            [event async for event in recognizer.stream([SECOND] * 3, SETTINGS)]
    error = caught.value
    assert (error.status, error.message, error.retry_after_s) == ("RESOURCE_EXHAUSTED", "no room", 1.5)
    assert error.field_violations == (FieldViolation("config.model", "'big' is not loaded; use tiny.en"),)


async def test_a_refusal_keeps_its_status_while_audio_is_being_sent():
    async with serving(behaving(refuse)) as address, Recognizer(address) as recognizer:

        async def refused() -> str:
            with pytest.raises(RecognitionError) as caught:
                [event async for event in recognizer.stream([bytes(1_000)] * 5, SETTINGS)]
            return caught.value.status

        statuses = [await refused() for _ in range(30)]
    assert statuses == ["RESOURCE_EXHAUSTED"] * 30


async def break_after_a_word(
    requests: AsyncIterator[Request], context: grpc.aio.ServicerContext
) -> AsyncIterator[Response]:
    await anext(requests)
    await anext(requests)
    yield result("hello", "1", 1, 0, 400, stability=0.5)
    await context.abort(grpc.StatusCode.UNAVAILABLE, "going down")


async def test_what_was_said_before_a_failure_is_not_lost():
    async with (
        serving(behaving(break_after_a_word)) as address,
        Recognizer(address) as recognizer,
        recognizer.call(SETTINGS) as call,
    ):
        await call.send_audio(SECOND)
        assert (await anext(call)).transcript == "hello"
        for _ in range(2):
            with pytest.raises(RecognitionError, match="UNAVAILABLE: going down"):
                await anext(call)
        with pytest.raises(RecognitionError, match="UNAVAILABLE: going down"):
            await call.send_audio(SECOND)
        await call.half_close()


async def test_a_server_that_vanishes_ends_the_call():
    started = asyncio.Event()

    async def hold(requests: AsyncIterator[Request], context: grpc.aio.ServicerContext) -> AsyncIterator[Response]:
        await anext(requests)
        yield Response(call_started=pb.CallStarted(call_id="x"))
        started.set()
        await asyncio.Event().wait()

    async with Recognizer("127.0.0.1:1", max_message_bytes=1 << 20) as unreachable:
        with pytest.raises(RecognitionError) as caught:
            [event async for event in unreachable.stream([SECOND], SETTINGS)]
        assert caught.value.status == "UNAVAILABLE"
    server = serving(behaving(hold))
    address = await server.__aenter__()
    async with Recognizer(address) as recognizer, recognizer.call(SETTINGS) as call:
        assert isinstance(await anext(call), CallStarted)
        await started.wait()
        await server.__aexit__(None, None, None)
        with pytest.raises(RecognitionError) as caught:
            await anext(call)
        assert caught.value.status in ("UNAVAILABLE", "CANCELLED")


async def end_early(requests: AsyncIterator[Request], context: grpc.aio.ServicerContext) -> AsyncIterator[Response]:
    await anext(requests)
    yield Response(notice=pb.Notice(code=pb.Notice.SERVER_DRAINING, message="bye"))


async def test_a_server_that_ends_the_call_early_fails_the_sender_not_the_reader():
    async with (
        serving(behaving(end_early)) as address,
        Recognizer(address) as recognizer,
        recognizer.call(SETTINGS) as call,
    ):
        events = [event async for event in call]
        with pytest.raises(RecognitionError, match="before the end of its audio") as caught:
            await call.send_audio(SECOND)
    assert events == [Notice(code=NoticeCode.SERVER_DRAINING, message="bye")]
    assert caught.value.status == "OK"


NUM_WORDS_UNREAD = 50


async def speak_without_listening(
    requests: AsyncIterator[Request], context: grpc.aio.ServicerContext
) -> AsyncIterator[Response]:
    await anext(requests)
    for number in range(NUM_WORDS_UNREAD):
        yield result(f"word {number}", str(number), 1, 0, 10, is_final=True, end_reason=1)
    await asyncio.Event().wait()


async def test_a_server_that_stops_reading_blocks_the_sender_but_not_the_events():
    async with (
        serving(behaving(speak_without_listening)) as address,
        Recognizer(address) as recognizer,
        recognizer.call(SETTINGS) as call,
    ):

        async def send_for_ever() -> None:
            while True:
                await call.send_audio(bytes(1 << 19))

        sender = asyncio.create_task(send_for_ever())
        received = [await asyncio.wait_for(anext(call), 5) for _ in range(NUM_WORDS_UNREAD)]
        sent_ms = -1.0
        while sent_ms != call.sent_ms:  # until nothing more goes out
            sent_ms = call.sent_ms
            await asyncio.sleep(0.2)
        assert not sender.done()
        assert sent_ms < 60 * 60 * 1000
        sender.cancel()
        await asyncio.wait([sender])
    assert [event.transcript for event in received] == [f"word {number}" for number in range(NUM_WORDS_UNREAD)]


NUM_LONG_ANSWERS = 400
LONG_ANSWER = "word " * 2_000


async def answer_at_length(
    requests: AsyncIterator[Request], context: grpc.aio.ServicerContext
) -> AsyncIterator[Response]:
    async for request in requests:
        if request.audio_content:
            yield result(LONG_ANSWER, "1", 1, 0, 10)


async def test_sending_everything_before_reading_anything_does_not_lock_up():
    async with (
        serving(behaving(answer_at_length)) as address,
        Recognizer(address) as recognizer,
        recognizer.call(SETTINGS) as call,
    ):
        async with asyncio.timeout(15):
            for _ in range(NUM_LONG_ANSWERS):
                await call.send_audio(bytes(10_000))
            await call.half_close()
            events = [event async for event in call]
    assert len(events) == NUM_LONG_ANSWERS


async def test_a_timeout_around_reading_leaves_the_call_alive():
    async with (
        serving(script_server({1: ["hello there"]})) as address,
        Recognizer(address) as recognizer,
        recognizer.call(SETTINGS) as call,
    ):
        assert isinstance(await anext(call), CallStarted)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(call), 0.05)
        await call.send_audio(SECOND)
        await call.half_close()
        finals = [event.transcript async for event in call if isinstance(event, Result) and event.is_final]
    assert finals == ["hello there"]


async def test_leaving_the_block_cancels_the_call_on_the_server():
    cancelled = asyncio.Event()

    async def wait_for_ever(
        requests: AsyncIterator[Request], context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Response]:
        yield Response(call_started=pb.CallStarted(call_id="x"))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with serving(behaving(wait_for_ever)) as address, Recognizer(address) as recognizer:
        async with recognizer.call(SETTINGS) as call:
            await anext(call)
        await asyncio.wait_for(cancelled.wait(), 5)
        with pytest.raises(RecognitionError, match="CANCELLED"):
            await anext(call)


async def test_what_the_audio_source_raises_is_raised_and_ends_the_call():
    async def broken_source() -> AsyncIterator[bytes]:
        yield SECOND
        raise OSError("microphone gone")

    async with serving(script_server({1: ["hello"]})) as address, Recognizer(address) as recognizer:
        with pytest.raises(OSError, match="microphone gone"):
            [event async for event in recognizer.stream(broken_source(), SETTINGS)]


async def newer_server(requests: AsyncIterator[Request], context: grpc.aio.ServicerContext) -> AsyncIterator[Response]:
    yield Response.FromString(bytes([0x9A, 0x06, 0x00]))  # field 99, an event this client does not know
    yield Response(notice=pb.Notice(code=77, message="from the future"))  # type: ignore[arg-type]


async def test_what_a_newer_server_says_is_skipped_or_unknown():
    async with serving(behaving(newer_server)) as address, Recognizer(address) as recognizer:
        events = [event async for event in recognizer.stream([], SETTINGS)]
    assert events == [Notice(code=NoticeCode.UNKNOWN, message="from the future")]


async def test_one_recording_at_once():
    async with serving(script_server({})) as address, Recognizer(address) as recognizer:
        recognition = await recognizer.recognize(SECOND, SETTINGS)
        with pytest.raises(RecognitionError) as caught:
            await recognizer.recognize(SECOND, CallSettings(sample_rate_hz=11_025))
    assert recognition.results[0].transcript == "16000 bytes"
    assert recognition.audio_duration_ms == 1000
    assert caught.value.status == "INVALID_ARGUMENT"
    assert caught.value.field_violations == (FieldViolation("config.sample_rate_hertz", "use 8000"),)


async def test_server_info():
    async with serving(script_server({})) as address, Recognizer(address) as recognizer:
        info = await recognizer.server_info()
    assert (info.version, info.models[0].name, info.models[0].language_codes) == ("fake", "tiny.en", ("en",))
    assert info.limits.max_message_bytes == 1 << 20
    assert info.limits.max_recognize_duration_ms == 60_000
    assert info.limits.sample_rates_hz == (8000, 16000, 24000, 48000)


async def test_many_calls_over_several_connections_keep_their_own_words():
    peers = set()

    async def own_words(requests: AsyncIterator[Request], context: grpc.aio.ServicerContext) -> AsyncIterator[Response]:
        peers.add(context.peer())
        first = await anext(requests)
        async for _ in requests:
            await asyncio.sleep(0)
        yield result(first.streaming_config.call.call_id, "1", 1, 0, 10, is_final=True, end_reason=4)

    async with serving(behaving(own_words)) as address, Recognizer(address, num_connections=3) as recognizer:

        async def one_call(number: int) -> list[str]:
            settings = CallSettings(sample_rate_hz=8000, call_id=f"call {number}")
            return [event.transcript async for event in recognizer.stream([SECOND] * 3, settings)]

        heard = await asyncio.gather(*(one_call(number) for number in range(24)))
    assert heard == [[f"call {number}"] for number in range(24)]
    assert len(peers) == 3


def test_repr_never_shows_what_was_said():
    event = pb.RecognitionResult(
        result_id="1",
        alternatives=[
            pb.Alternative(
                transcript="secret", words=[pb.WordInfo(word="secret", start_offset=ms(1), end_offset=ms(2))]
            )
        ],
    )
    typed = WIRE_FORMAT.event(Response(result=event))
    assert isinstance(typed, Result)
    assert (typed.words[0].text, typed.words[0].end_ms) == ("secret", 2)
    assert "secret" not in repr(typed) + repr(typed.alternatives) + repr(typed.words)
