"""Live callers are told when their results fall behind; recordings sent at once are not."""

import asyncio

from pipeline.engines.scripted import ScriptedEngine
from server.lag import LagWatch
from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.audio import bursts, linear16, split
from tests.support.server import audio, converse, finals_of, rest_of, running_server, speech_stub, start

SPEECH = linear16(bursts([(200, 0), (1_500, 0.3), (800, 0)]))
CHUNK_MS = 100
CHUNK_BYTES = 16 * CHUNK_MS
SLOW = {"server__behind_notice_s": 0.4}


def codes(responses: list[pb.StreamingRecognizeResponse]) -> list[int]:
    return [r.notice.code for r in responses if r.WhichOneof("event") == "notice"]


async def live(address: str) -> list[pb.StreamingRecognizeResponse]:
    async with speech_stub(address) as stub:
        call = stub.StreamingRecognize()
        await call.write(start(interim_results=True))
        for chunk in split(SPEECH, [CHUNK_BYTES]):
            await call.write(audio(chunk))
            await asyncio.sleep(CHUNK_MS / 1000)
        await call.done_writing()
        return await rest_of(call)


def test_it_is_told_once_until_the_call_has_caught_up() -> None:
    watch = LagWatch(2.0)
    told = [watch.falls_behind(lag_s) for lag_s in (0.5, 2.5, 4.0, 1.5, 2.5, 0.9, 2.1)]
    assert told == [False, True, False, False, False, False, True]
    assert not LagWatch(0).falls_behind(100)


async def test_a_live_caller_is_told_once() -> None:
    async with running_server(engines=[ScriptedEngine(delay_s=0.7)], **SLOW) as address:
        responses = await live(address)
    assert codes(responses) == [pb.Notice.FALLING_BEHIND]
    notice = next(r.notice for r in responses if r.WhichOneof("event") == "notice")
    assert "s behind the audio" in notice.message
    assert len(finals_of(responses)) == 1


async def test_a_server_that_keeps_up_says_nothing() -> None:
    async with running_server(**SLOW) as address:
        assert codes(await live(address)) == []


async def test_a_recording_sent_at_once_is_not_told() -> None:
    long = linear16(bursts([(1_500, 0.3), (800, 0)] * 4))
    async with running_server(engines=[ScriptedEngine(delay_s=0.7)], **SLOW) as address, speech_stub(address) as stub:
        responses = await converse(stub, [start(), *(audio(chunk) for chunk in split(long, [CHUNK_BYTES]))])
    assert codes(responses) == []
    assert len(finals_of(responses)) == 4
