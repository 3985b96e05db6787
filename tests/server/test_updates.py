"""Settings that change within a call, a language that settles, and a line of another speed, over the wire."""

import asyncio

import grpc
import numpy as np
import pytest

from clients.errors import RecognitionError
from clients.recognizer import Recognizer
from clients.types import CallSettings, Encoding, Notice, NoticeCode, Result
from pipeline.engines.scripted import ScriptedEngine
from pipeline.types import DecodeRequest
from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.audio import SAMPLE_CALLS, bursts, encode_mulaw, linear16, load, split
from tests.support.server import (
    audio,
    config,
    control,
    converse,
    details_of,
    finals_of,
    running_server,
    speech_stub,
    start,
)

UTTERANCE = linear16(bursts([(200, 0), (800, 0.3), (800, 0)]))


def update(**fields):
    return control(update=pb.Control.Update(**fields))


async def test_what_begins_behind_an_update_is_in_its_language():
    requests = [
        start(config(language_code="en-US")),
        audio(UTTERANCE),
        update(language_code="de-AT"),
        audio(UTTERANCE),
        update(language_code="fr"),
        audio(UTTERANCE),
    ]
    async with running_server() as address, speech_stub(address) as stub:
        finals = finals_of(await converse(stub, requests))
    assert [f.language_code for f in finals] == ["en", "de", "fr"]


async def test_what_begins_behind_an_update_has_its_contexts():
    names = pb.SpeechContext(phrases=["Szymborski", "Fennimar"])
    requests = [
        start(),
        audio(UTTERANCE),
        update(speech_contexts=[names], replace_speech_contexts=True),
        audio(UTTERANCE),
        update(replace_speech_contexts=True),
        audio(UTTERANCE),
    ]

    def say_hints(request: DecodeRequest) -> str:
        return " ".join(["hints", *(p for context in request.hints.speech_contexts for p in context.phrases)])

    async with running_server(engines=[ScriptedEngine(script=say_hints)]) as address, speech_stub(address) as stub:
        finals = finals_of(await converse(stub, requests))
    assert [f.alternatives[0].transcript for f in finals] == ["hints", "hints Szymborski Fennimar", "hints"]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (update(language_code="xx"), "control.update.language_code"),
        (update(), "control.update"),
        (update(speech_contexts=[pb.SpeechContext(phrases=["Talkpath"])]), "control.update.speech_contexts"),
        (
            update(speech_contexts=[pb.SpeechContext(phrases=["?"])], replace_speech_contexts=True),
            "control.update.speech_contexts[0].phrases[0]",
        ),
    ],
)
async def test_a_wrong_update_ends_the_call_and_names_the_field(message, field):
    async with running_server() as address, speech_stub(address) as stub:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await converse(stub, [start(), message])
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details_of(caught.value)[0].field_violations[0].field == field


async def test_the_sdk_updates_and_tells_that_a_language_is_settled():
    settings = CallSettings(sample_rate_hz=8_000, language_code="auto", interim_results=False)
    long = linear16(bursts([(200, 0), (4_000, 0.3), (800, 0)]))
    async with running_server() as address, Recognizer(address) as recognizer, recognizer.call(settings) as call:
        await call.send_audio(long)
        await call.update(language_code="de")
        await call.send_audio(UTTERANCE)
        await call.half_close()
        events = [event async for event in call]
    notices = [event for event in events if isinstance(event, Notice)]
    assert [n.code for n in notices] == [NoticeCode.LANGUAGE_LOCKED]
    assert "en" in notices[0].message
    assert notices[0].channel_tag == 1
    assert [e.language_code for e in events if isinstance(e, Result) and e.is_final] == ["en", "de"]


async def test_the_sdk_says_which_update_was_wrong():
    settings = CallSettings(sample_rate_hz=8_000)
    async with running_server() as address, Recognizer(address) as recognizer, recognizer.call(settings) as call:
        await call.update(language_code="xx")
        with pytest.raises(RecognitionError, match=r"control\.update\.language_code"):
            [event async for event in call]


async def test_a_wrong_encoding_is_told_over_the_wire():
    settings = CallSettings(encoding=Encoding.LINEAR16, sample_rate_hz=8_000)
    speech = np.tile(load(SAMPLE_CALLS / "clip_numbers.wav", 8_000)[0], 8)
    async with running_server() as address, Recognizer(address) as recognizer:
        events = [event async for event in recognizer.stream([encode_mulaw(speech)], settings)]
    told = [event for event in events if isinstance(event, Notice)]
    assert [n.code for n in told] == [NoticeCode.ENCODING_MISMATCH]
    assert "looks like MULAW" in told[0].message


@pytest.mark.slow
async def test_a_live_line_at_twice_its_speed_is_told():
    settings = CallSettings(sample_rate_hz=8_000, interim_results=False)
    piece_s = 0.1
    async with (
        running_server(engines=[ScriptedEngine()]) as address,
        Recognizer(address) as recognizer,
        recognizer.call(settings) as call,
    ):
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        for number, chunk in enumerate(split(bytes(int(32_000 * 9)), [int(32_000 * piece_s)])):
            await asyncio.sleep(max(0.0, begun_s + number * piece_s - loop.time()))
            await call.send_audio(chunk)
        await call.half_close()
        told = [event async for event in call if isinstance(event, Notice)]
    assert [n.code for n in told] == [NoticeCode.SAMPLE_RATE_MISMATCH]
    assert "32000 bytes a second" in told[0].message
