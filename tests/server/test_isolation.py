"""What one call does must not reach another: cancels, crashes, slowness, failures, leaks."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from contextlib import suppress

import grpc
import psutil
import pytest

from pipeline.engines.scripted import ScriptedEngine, counting_script
from pipeline.errors import EngineError
from pipeline.types import DecodeRequest
from talkpath.speech.v1 import speech_pb2 as pb
from talkpath.speech.v1 import speech_pb2_grpc
from tests.support.audio import bursts, linear16
from tests.support.server import (
    LocalServer,
    audio,
    config,
    converse,
    finals_of,
    local_server,
    rest_of,
    running_server,
    speech_stub,
    start,
)

SPEECH = linear16(bursts([(300, 0), (900, 0.3), (800, 0)]))
FREED_WITHIN_S = 1.0
MIB = 1024 * 1024


class GatedScript:
    """Holds the engine until it is opened."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.gate = threading.Event()

    def __call__(self, request: DecodeRequest) -> str:
        self.entered.set()
        assert self.gate.wait(10)
        return counting_script(request)


async def _open_call(stub: speech_pb2_grpc.SpeechStub, **fields: object) -> grpc.aio.StreamStreamCall:
    call = stub.StreamingRecognize()
    await call.write(start(**fields))
    await call.read()
    return call


async def _freed(server: LocalServer) -> float:
    """Seconds until no call is live."""
    began_s = time.monotonic()
    async with asyncio.timeout(5):
        await server.lifecycle.admission.wait_until_idle()
    return time.monotonic() - began_s


async def test_cancelled_call_frees_its_slot_and_its_queued_work() -> None:
    script = GatedScript()
    engine = ScriptedEngine(script=script)
    async with (
        local_server(engines=[engine], server__max_concurrent_calls=2) as server,
        speech_stub(server.address) as stub,
    ):
        blocking = await _open_call(stub)
        await blocking.write(audio(SPEECH))
        await asyncio.to_thread(script.entered.wait, 5)
        waiting = await _open_call(stub)
        await waiting.write(audio(SPEECH))
        blocking.cancel()
        waiting.cancel()
        assert await _freed(server) < FREED_WITHIN_S
        script.gate.set()
        responses = await converse(stub, [start(), audio(SPEECH)])
    assert len(finals_of(responses)) == 1
    assert engine.num_requests <= 3


async def test_closed_connection_frees_the_slot() -> None:
    async with local_server(server__max_concurrent_calls=1) as server:
        async with speech_stub(server.address) as stub:
            await _open_call(stub)
            assert server.lifecycle.admission.num_active == 1
        assert await _freed(server) < FREED_WITHIN_S


VANISHING_CLIENT = """
import sys, grpc
from talkpath.speech.v1 import speech_pb2 as pb, speech_pb2_grpc
def requests():
    config = pb.RecognitionConfig(encoding="LINEAR16", sample_rate_hertz=8000)
    yield pb.StreamingRecognizeRequest(streaming_config=pb.StreamingConfig(config=config))
    while True:
        yield pb.StreamingRecognizeRequest(audio_content=bytes(160))
        sys.stdin.readline()
stub = speech_pb2_grpc.SpeechStub(grpc.insecure_channel(sys.argv[1]))
for response in stub.StreamingRecognize(requests()):
    print(response.WhichOneof("event"), flush=True)
"""


async def test_killed_client_frees_the_slot() -> None:
    async with local_server() as server:
        client = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            VANISHING_CLIENT,
            server.address,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert await asyncio.wait_for(client.stdout.readline(), 20) == b"call_started\n"
            assert server.lifecycle.admission.num_active == 1
        finally:
            client.kill()
            await client.wait()
        assert await _freed(server) < FREED_WITHIN_S


async def test_deadline_ends_a_call() -> None:
    async with local_server() as server, speech_stub(server.address) as stub:
        call = stub.StreamingRecognize(timeout=0.3)
        await call.write(start())
        assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert await _freed(server) < FREED_WITHIN_S


async def _drop_calls(stub: speech_pb2_grpc.SpeechStub, count: int) -> None:
    async def drop(index: int) -> None:
        call = await _open_call(stub, interim_results=True)
        if index % 2:
            await call.write(audio(SPEECH))
        call.cancel()
        with suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
            await call.code()

    for first in range(0, count, 20):
        await asyncio.gather(*(drop(index) for index in range(first, first + 20)))


async def test_200_dropped_calls_leave_nothing_behind() -> None:
    process = psutil.Process()
    async with local_server() as server, speech_stub(server.address) as stub:
        await _drop_calls(stub, 100)
        await _freed(server)
        gc.collect()
        tasks, threads, rss_bytes = asyncio.all_tasks(), process.num_threads(), process.memory_info().rss
        await _drop_calls(stub, 200)
        await _freed(server)
        # The server's own task that waits for the next call is another one by now.
        await asyncio.wait(asyncio.all_tasks() - tasks - {asyncio.current_task()}, timeout=1)
        gc.collect()
        assert len(asyncio.all_tasks()) <= len(tasks)
        assert process.num_threads() <= threads + 1
        assert process.memory_info().rss - rss_bytes < 10 * MIB
        assert server.lifecycle.admission.num_active == 0


async def test_slow_reader_blocks_nobody_and_loses_nothing() -> None:
    utterance = [(300, 0), (700, 0.3), (700, 0)]
    many = linear16(bursts(utterance * 40))
    long_text = "word " * 20_000

    def script(request: DecodeRequest) -> str:
        return long_text if request.hints.language_code == "de" else counting_script(request)

    # Windows of a fixed size, so that the slow reader's fill up.
    async with (
        running_server(engines=[ScriptedEngine(script=script)]) as address,
        speech_stub(address, http2__bdp_probe=0) as slow_stub,
        speech_stub(address) as stub,
    ):
        slow = slow_stub.StreamingRecognize()
        await slow.write(start(config(language_code="de")))
        writing = asyncio.create_task(_write_all(slow, many))
        for _ in range(3):
            async with asyncio.timeout(10):
                assert len(finals_of(await converse(stub, [start(), audio(SPEECH)]))) == 1
        finals = finals_of(await rest_of(slow))
        await writing
    assert len(finals) == 40
    assert all(len(final.alternatives[0].transcript) >= len(long_text.strip()) for final in finals)


async def _write_all(call: grpc.aio.StreamStreamCall, data: bytes) -> None:
    for position in range(0, len(data), 16_000):
        await call.write(audio(data[position : position + 16_000]))
    await call.done_writing()


async def test_hour_sent_at_once_does_not_starve_others() -> None:
    ten_minutes = linear16(bursts([(300, 0), (900, 0.3), (800, 0)])) * 300
    async with running_server() as address, speech_stub(address) as stub, speech_stub(address) as other:
        greedy = stub.StreamingRecognize()
        await greedy.write(start())
        writing = asyncio.create_task(_write_all(greedy, ten_minutes))
        for _ in range(3):
            began_s = time.monotonic()
            assert len(finals_of(await converse(other, [start(), audio(SPEECH)]))) == 1
            assert time.monotonic() - began_s < 1.0
        assert not writing.done()
        greedy.cancel()
        with suppress(asyncio.CancelledError, grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await writing


async def test_engine_failure_reaches_only_its_call() -> None:
    def script(request: DecodeRequest) -> str:
        if request.hints.language_code == "de":
            raise EngineError("German fails")
        if request.hints.language_code == "fr":
            raise ZeroDivisionError
        return counting_script(request)

    async with (
        running_server(engines=[ScriptedEngine(script=script, delay_s=0.02)]) as address,
        speech_stub(address) as stub,
    ):
        german, french, english = await asyncio.gather(
            *(converse(stub, [start(config(language_code=code)), audio(SPEECH)]) for code in ("de", "fr", "en"))
        )
    for responses in (german, french):
        notices = [r.notice for r in responses if r.HasField("notice")]
        assert [notice.code for notice in notices] == [pb.Notice.DECODE_FAILED]
        assert [len(final.alternatives) for final in finals_of(responses)] == [0]
    assert finals_of(english)[0].alternatives[0].transcript.startswith("word1")
    assert not any(r.HasField("notice") for r in english)


async def test_words_never_reach_another_call() -> None:
    def script(request: DecodeRequest) -> str:
        return f"loudness{round(float(abs(request.audio).max()) * 100)}"

    async def heard(stub: speech_pb2_grpc.SpeechStub, level: int) -> set[str]:
        pattern = bursts([(300, 0), (700, 1), (700, 0)] * 3)
        data = linear16(pattern / abs(pattern).max() * level / 100)
        finals = finals_of(await converse(stub, [start(), audio(data)]))
        return {final.alternatives[0].transcript for final in finals}

    levels = [20, 30, 40, 50, 60, 70, 80, 90]
    async with (
        running_server(engines=[ScriptedEngine(script=script, delay_s=0.01)]) as address,
        speech_stub(address) as stub,
    ):
        everyone = await asyncio.gather(*(heard(stub, level) for level in levels))
    assert len(set().union(*everyone)) == sum(len(words) for words in everyone)


async def test_unforeseen_error_is_internal_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret words")

    async with local_server() as server, speech_stub(server.address) as stub:
        monkeypatch.setattr("server.call.RecognitionSession.receive_audio", broken)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await converse(stub, [start(), audio(SPEECH)])
        assert server.lifecycle.admission.num_active == 0
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in caught.value.details()
