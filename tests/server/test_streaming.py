"""Calls that go well, over a real connection."""

import asyncio

import grpc
import pytest

from pipeline.engines.scripted import ScriptedEngine
from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.audio import bursts, linear16, split
from tests.support.server import (
    FLUSH,
    KEEP_ALIVE,
    audio,
    config,
    control,
    converse,
    converse_live,
    details_of,
    finals_of,
    local_server,
    read_until_final,
    rest_of,
    results_of,
    running_server,
    speech_stub,
    start,
)
from tests.support.sounds import KEYS, call_sounds

TWO_UTTERANCES = linear16(bursts([(500, 0), (1_200, 0.3), (1_000, 0), (900, 0.3)]))
"""The second one goes on to the end."""
CHUNK_BYTES = 1_600


def chunks(data: bytes, size: int = CHUNK_BYTES) -> list[pb.StreamingRecognizeRequest]:
    return [audio(chunk) for chunk in split(data, [size])]


async def test_a_call_from_settings_to_last_words() -> None:
    first = start(
        config(language_code="en-US", enable_word_time_offsets=True, max_alternatives=2),
        interim_results=True,
        enable_speech_activity_events=True,
        call=pb.CallInfo(call_id="call-7", channel_roles={1: pb.CallInfo.CUSTOMER}),
    )
    async with running_server() as address, speech_stub(address) as stub:
        sent = chunks(TWO_UTTERANCES)
        responses = await converse_live(stub, [first, *sent[:15]], sent[15:])
    started = responses[0].call_started
    assert started.call_id == "call-7"
    in_force = started.config
    assert in_force.config.model == "scripted:demo"
    assert in_force.config.language_code == "en"
    assert in_force.config.audio_channel_count == 1
    assert in_force.config.task == pb.RecognitionConfig.TRANSCRIBE
    assert in_force.config.denoise == pb.RecognitionConfig.DENOISE_OFF
    assert in_force.endpointing.hangover_ms == 500
    assert in_force.endpointing.sensitivity == 0.5
    assert in_force.call.channel_roles[1] == pb.CallInfo.CUSTOMER
    finals = finals_of(responses)
    assert [final.end_reason for final in finals] == [pb.RecognitionResult.SILENCE, pb.RecognitionResult.END_OF_STREAM]
    assert all(final.alternatives[0].transcript.startswith("word1 word2 word3") for final in finals)
    assert all(len(final.alternatives) == 2 and final.alternatives[0].words for final in finals)
    assert all(final.HasField("latency") and final.latency.ToTimedelta().total_seconds() < 5 for final in finals)
    assert any(not result.is_final for result in results_of(responses))
    kinds = [r.speech_activity.kind for r in responses if r.WhichOneof("event") == "speech_activity"]
    assert kinds == [pb.SpeechActivity.BEGIN, pb.SpeechActivity.END] * 2
    assert responses[-1].ack.audio_offset.ToMilliseconds() == 3_600


async def test_finals_do_not_depend_on_chunks_or_company() -> None:
    async def finals(stub: object, size: int) -> list[bytes]:
        found = finals_of(await converse(stub, [start(interim_results=True), *chunks(TWO_UTTERANCES, size)]))
        for final in found:
            final.ClearField("latency")
        return [final.SerializeToString(deterministic=True) for final in found]

    sizes = [1_600, 160, 321, 40_000, len(TWO_UTTERANCES)]
    async with running_server(["scripted:slow?delay_ms=5"]) as address, speech_stub(address) as stub:
        alone = await finals(stub, 3_200)
        together = await asyncio.gather(*(finals(stub, size) for size in sizes))
    assert len(alone) == 2
    assert together == [alone] * len(sizes)


async def test_flush_keeps_the_stream_open() -> None:
    speech = linear16(bursts([(300, 0), (1_000, 0.3)]))
    async with running_server() as address, speech_stub(address) as stub:
        call = stub.StreamingRecognize()
        for request in (start(), audio(speech), FLUSH):
            await call.write(request)
        responses = await read_until_final(call)
        assert finals_of(responses)[0].end_reason == pb.RecognitionResult.FLUSH
        await call.write(audio(speech))
        await call.done_writing()
        rest = finals_of(await rest_of(call))
        assert [final.end_reason for final in rest] == [pb.RecognitionResult.END_OF_STREAM]


async def test_gap_moves_the_call_clock() -> None:
    speech = linear16(bursts([(300, 0), (1_000, 0.3)]))
    requests = [
        start(call=pb.CallInfo(resume=pb.CallInfo.Resume(audio_offset_ms=60_000))),
        audio(speech),
        control(gap=pb.Control.Gap(duration_ms=1_800_000)),
        KEEP_ALIVE,
        audio(b""),
        audio(speech),
    ]
    async with running_server() as address, speech_stub(address) as stub:
        responses = await converse(stub, requests)
    first, second = finals_of(responses)
    assert 60_000 <= first.result_start_offset.ToMilliseconds() < 60_400
    assert 1_861_300 <= second.result_start_offset.ToMilliseconds() < 1_861_700
    assert responses[-1].ack.audio_offset.ToMilliseconds() == 60_000 + 2 * 1_300 + 1_800_000


async def test_the_scene_of_a_call() -> None:
    heard = linear16(call_sounds([(500, ()), (100, KEYS["7"]), (900, ()), (2_000, (440, 480)), (500, ())]))
    key = control(dtmf=pb.Control.Dtmf(digit="#", channel_tag=1))
    resume = pb.CallInfo(resume=pb.CallInfo.Resume(audio_offset_ms=60_000))
    requests = [*chunks(heard), key, control(gap=pb.Control.Gap(duration_ms=5_000))]
    async with running_server() as address, speech_stub(address) as stub:
        asked = await converse(stub, [start(call=resume, enable_scene_events=True), *requests])
        silent = await converse(stub, [start(call=resume), *requests])
    scenes = [r.scene for r in asked if r.WhichOneof("event") == "scene"]
    told = [(pb.Scene.Kind.Name(s.kind), s.digit, s.is_over, round(s.offset.ToMilliseconds(), -2)) for s in scenes]
    assert told == [
        ("DTMF", "7", True, 60_500),
        ("RINGBACK", "", False, 61_500),
        ("DTMF", "#", True, 64_000),
        ("MISSING_AUDIO", "", True, 64_000),
        ("RINGBACK", "", True, 61_500),
    ]
    assert {r.WhichOneof("event") for r in silent} == {"call_started", "ack"}
    assert results_of(asked) == []


async def test_a_key_on_a_channel_that_is_not_there() -> None:
    key = control(dtmf=pb.Control.Dtmf(digit="1", channel_tag=2))
    async with running_server() as address, speech_stub(address) as stub:
        with pytest.raises(grpc.aio.AioRpcError, match="control.dtmf.channel_tag: 2 is outside 1 to 1") as caught:
            await converse(stub, [start(), key])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_caller_that_falls_silent_gets_its_final() -> None:
    speech = linear16(bursts([(300, 0), (1_000, 0.3)]))
    async with running_server(server__idle_gap_ms=100) as address, speech_stub(address) as stub:
        call = stub.StreamingRecognize()
        await call.write(start())
        await call.write(audio(speech))
        async with asyncio.timeout(5):
            responses = await read_until_final(call)
        assert finals_of(responses)[0].end_reason == pb.RecognitionResult.SILENCE
        await call.done_writing()
        assert finals_of(await rest_of(call)) == []


async def test_two_parties() -> None:
    left = bursts([(300, 0), (900, 0.3), (1_500, 0)], seed=1)
    right = bursts([(1_500, 0), (900, 0.3), (300, 0)], seed=2)
    stereo = linear16([left, right])
    async with running_server() as address, speech_stub(address) as stub:
        finals = finals_of(await converse(stub, [start(config(audio_channel_count=2)), *chunks(stereo, 777)]))
    assert [(final.channel_tag, final.result_id) for final in finals] == [(1, "1-1"), (2, "2-1")]


@pytest.mark.parametrize("own", ["", "own-id"])
async def test_call_id_from_metadata(own: str) -> None:
    async with running_server() as address, speech_stub(address) as stub:
        call = stub.StreamingRecognize(
            iter([start(call=pb.CallInfo(call_id=own))]), metadata=(("x-call-id", "header-id"),)
        )
        responses = [response async for response in call]
        trailers = dict(await call.trailing_metadata())
    assert responses[0].call_started.call_id == trailers["x-call-id"] == (own or "header-id")


async def test_empty_call() -> None:
    async with running_server() as address, speech_stub(address) as stub:
        responses = await converse(stub, [start()])
    assert [response.WhichOneof("event") for response in responses] == ["call_started"]


async def test_recognize() -> None:
    request = pb.RecognizeRequest(config=config(), audio_content=TWO_UTTERANCES)
    async with running_server() as address, speech_stub(address) as stub:
        streamed = finals_of(await converse(stub, [start(), *chunks(TWO_UTTERANCES)]))
        response = await stub.Recognize(request)
    assert [r.alternatives[0].transcript for r in response.results] == [r.alternatives[0].transcript for r in streamed]
    assert all(result.is_final for result in response.results)
    assert response.audio_duration.ToMilliseconds() == 3_600


async def test_recognize_says_when_a_decode_failed() -> None:
    async with running_server(engines=[ScriptedEngine(fail_on=[1])]) as address, speech_stub(address) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.Recognize(pb.RecognizeRequest(config=config(), audio_content=TWO_UTTERANCES))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "could not be decoded" in caught.value.details()


async def test_server_info() -> None:
    models = ["scripted:one", "scripted:two"]
    async with running_server(models, server__max_concurrent_calls=9) as address, speech_stub(address) as stub:
        info = await stub.GetServerInfo(pb.GetServerInfoRequest())
        responses = await converse(stub, [start(config(model="scripted:two"))])
    assert [model.name for model in info.models] == models
    assert info.models[0].language_codes[0] == "en"
    assert info.limits.max_concurrent_calls == 9
    assert info.limits.max_message_bytes == 4 * 1024 * 1024
    assert info.limits.sample_rates_hertz[:2] == [8_000, 16_000]
    assert info.version
    assert responses[0].call_started.config.config.model == "scripted:two"


async def test_an_engine_that_does_not_answer_fails_the_call_not_the_server() -> None:
    async with local_server(["scripted:stuck?delay_ms=1500"], server__decode_timeout_s=0.2) as server:
        async with speech_stub(server.address) as stub:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await converse(stub, [start(), audio(TWO_UTTERANCES)])
        assert server.lifecycle.admission.num_active == 0
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "0.2 s (server.decode_timeout_s)" in caught.value.details()
    assert [type(detail).__name__ for detail in details_of(caught.value)] == ["RetryInfo"]
