"""Start, health, drain and stop."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from pipeline.engines.scripted import ScriptedEngine
from server.app import Server
from server.engines import create_engine
from server.errors import StartupError
from server.lifecycle import StopSignals
from server.servicer import SERVICE_NAME
from server.settings import ModelSettings
from talkpath.speech.v1 import speech_pb2 as pb
from tests.support.audio import bursts, linear16
from tests.support.server import (
    LocalServer,
    audio,
    converse,
    details_of,
    finals_of,
    local_server,
    rest_of,
    running_server,
    settings_for_tests,
    speech_stub,
    start,
)

SPEECH = linear16(bursts([(300, 0), (1_000, 0.3)]))
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
READY_WITHIN_S = 30


async def _health(address: str, service: str) -> int:
    async with grpc.aio.insecure_channel(address) as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        return (await health_pb2_grpc.HealthStub(channel).Check(request)).status


@pytest.mark.parametrize("service", ["", SERVICE_NAME])
async def test_health(service: str) -> None:
    async with local_server() as server:
        assert await _health(server.address, service) == SERVING
        await server.lifecycle.drain(asyncio.Event())
        assert await _health(server.address, service) == NOT_SERVING


async def test_reflection_lists_everything() -> None:
    async with running_server() as address, grpc.aio.insecure_channel(address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="*")
        (response,) = [r async for r in stub.ServerReflectionInfo(iter([request]))]
    names = {service.name for service in response.list_services_response.service}
    assert {SERVICE_NAME, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= names


async def _next_notice(call: grpc.aio.StreamStreamCall) -> pb.Notice:
    while not (response := await call.read()).HasField("notice"):
        pass
    return response.notice


async def _begin_drain(server: LocalServer, now: asyncio.Event) -> asyncio.Task[bool]:
    return asyncio.create_task(server.lifecycle.drain(now))


async def test_drain_lets_live_calls_finish() -> None:
    async with local_server(server__drain_grace_s=20) as server, speech_stub(server.address) as stub:
        call = stub.StreamingRecognize()
        await call.write(start())
        await call.write(audio(SPEECH))
        await call.read()
        undecided = stub.StreamingRecognize()
        await undecided.wait_for_connection()
        draining = await _begin_drain(server, asyncio.Event())
        notice = await _next_notice(call)
        assert notice.code == pb.Notice.SERVER_DRAINING
        assert "20 s" in notice.message
        for refused in (undecided, stub.StreamingRecognize(iter([start()]))):
            assert await refused.code() is grpc.StatusCode.UNAVAILABLE
            assert "shutting down" in await refused.details()
        assert not draining.done()
        await call.write(audio(SPEECH))
        await call.done_writing()
        (final,) = finals_of(await rest_of(call))
        assert final.alternatives[0].transcript.endswith("word9")  # what was sent while draining, too
        assert await call.code() is grpc.StatusCode.OK
        assert await draining is True


async def test_drain_under_load_gives_everyone_their_finals() -> None:
    engine = ScriptedEngine(delay_s=0.02)
    async with (
        local_server(engines=[engine], server__drain_grace_s=0.2, server__drain_flush_s=10) as server,
        speech_stub(server.address) as stub,
    ):
        calls = [stub.StreamingRecognize() for _ in range(8)]
        for call in calls:
            await call.write(start(interim_results=True))
            await call.write(audio(SPEECH))
            await call.read()
        # Everyone has spoken once an interim came back.
        for call in calls:
            await call.read()
        draining = await _begin_drain(server, asyncio.Event())
        ends = await asyncio.gather(*(_cut_end(call) for call in calls))
        assert await draining is True
    assert [num_finals for num_finals, _ in ends] == [1] * 8
    assert all(600 <= offset_ms <= 1_300 for _, offset_ms in ends)


async def _cut_end(call: grpc.aio.StreamStreamCall) -> tuple[int, int]:
    """Number of finals, and the offset that the status says to resume from."""
    responses: list[pb.StreamingRecognizeResponse] = []

    async def read_on() -> None:
        while True:
            responses.append(await call.read())

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await read_on()
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    retry, info = details_of(caught.value)
    assert isinstance(retry, error_details_pb2.RetryInfo)
    assert isinstance(info, error_details_pb2.ErrorInfo)
    assert info.reason == "SERVER_DRAINING"
    offset_ms = int(info.metadata["audio_offset_ms"])
    assert f"audio_offset_ms {offset_ms}" in caught.value.details()
    assert responses[-1].ack.audio_offset.ToMilliseconds() == offset_ms
    return len(finals_of(responses)), offset_ms


async def test_second_signal_stops_now() -> None:
    signals = StopSignals()
    async with local_server(server__drain_grace_s=60) as server, speech_stub(server.address) as stub:
        call = stub.StreamingRecognize()
        await call.write(start())
        await call.read()
        serving = asyncio.create_task(server.lifecycle.serve_until_signalled(signals))
        signals.receive()
        assert (await _next_notice(call)).code == pb.Notice.SERVER_DRAINING
        signals.receive()
        assert await asyncio.wait_for(serving, 5) == 1
        assert await call.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


async def test_calls_that_cannot_be_flushed_do_not_hold_up_the_drain() -> None:
    limits = {"server__drain_grace_s": 0.05, "server__drain_flush_s": 0.05}
    async with local_server(["scripted:stuck?delay_ms=1000"], **limits) as server, speech_stub(server.address) as stub:
        call = stub.StreamingRecognize()
        await call.write(start())
        await call.write(audio(SPEECH))
        await call.read()
        assert await server.lifecycle.drain(asyncio.Event()) is False


async def test_port_in_use() -> None:
    async with running_server() as address:
        with pytest.raises(StartupError, match=address):
            Server(settings_for_tests(server__listen=address))


async def test_settings_that_no_model_can_follow() -> None:
    server = Server(settings_for_tests(recognition__language_code="tlh"))
    engine = ScriptedEngine()
    with pytest.raises(StartupError, match=r"recognition\.language_code 'tlh'.*en, de, fr"):
        await server.start([engine])
    assert engine.is_closed


@pytest.mark.parametrize("name", ["scripted:x?delay=5", "scripted:x?delay_ms=soon"])
def test_wrong_scripted_models(name: str) -> None:
    with pytest.raises(StartupError, match="delay_ms"):
        create_engine(name, ModelSettings())


def _environment() -> dict[str, str]:
    return {**os.environ, "TALKPATH_RECOGNITION__VAD": "energy", "TALKPATH_RECOGNITION__DENOISING": "off"}


def _command(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("talkpath-server")), *arguments]


@asynccontextmanager
async def _server_process(*arguments: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    process = await asyncio.create_subprocess_exec(
        *_command("--listen", "127.0.0.1:0", "--model", "scripted:demo", *arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), READY_WITHIN_S)).decode()
        assert line.startswith("talkpath-server listening on 127.0.0.1:"), line
        yield process, line.split()[-1]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_sigterm_drains_and_exits_0() -> None:
    async with _server_process() as (process, address):
        async with speech_stub(address) as stub:
            call = stub.StreamingRecognize()
            await call.write(start())
            await call.write(audio(SPEECH))
            await call.read()
            process.send_signal(signal.SIGTERM)
            assert (await _next_notice(call)).code == pb.Notice.SERVER_DRAINING
            await call.done_writing()
            assert len(finals_of(await rest_of(call))) == 1
        stdout, stderr = await asyncio.wait_for(process.communicate(), 20)
        assert process.returncode == 0
    assert stdout == b""  # the line was the only one
    assert b'"draining"' in stderr
    assert b"word1" not in stderr


async def test_second_sigterm_stops_a_process_now() -> None:
    async with _server_process("--set", "server.drain_grace_s=60") as (process, address), speech_stub(address) as stub:
        call = stub.StreamingRecognize()
        await call.write(start())
        await call.read()
        process.send_signal(signal.SIGTERM)
        assert (await _next_notice(call)).code == pb.Notice.SERVER_DRAINING
        process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(process.wait(), 20) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--set", "server.lissen=1"], "server.lissen: there is no such setting"),
        (["--listen", "0.0.0.0:0"], "server.insecure=true"),
        (["--model", "scripted:x?y=1"], "delay_ms"),
        (["--config", "/does/not/exist.toml"], "/does/not/exist.toml: no such settings file"),
    ],
)
async def test_startup_errors_are_one_line(arguments: list[str], complaint: str) -> None:
    code, stdout, stderr = await _run(*arguments)
    assert code == 2
    assert stdout == ""
    assert stderr.startswith("talkpath-server: ")
    assert complaint in stderr
    assert stderr.count("\n") == 1


async def test_taken_port_is_one_line() -> None:
    async with running_server() as address:
        code, _, stderr = await _run("--listen", address, "--model", "scripted:demo")
    assert code == 2
    assert stderr == f"talkpath-server: server.listen {address} cannot be listened on: Address already in use\n"


async def test_print_config_can_be_read_back(tmp_path: Path) -> None:
    arguments = ["--model", "base", "--model", "tiny.en", "--set", "server.max_concurrent_calls=7"]
    code, printed, _ = await _run(*arguments, "--print-config")
    assert code == 0
    assert 'names = ["base", "tiny.en"]' in printed
    assert "max_concurrent_calls = 7" in printed
    path = tmp_path / "printed.toml"
    path.write_text(printed)
    assert (await _run("--config", str(path), "--print-config"))[1] == printed


async def _run(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *_command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment()
    )
    stdout, stderr = await asyncio.wait_for(process.communicate(), READY_WITHIN_S)
    return process.returncode, stdout.decode(), stderr.decode()


async def test_stopped_server_gives_its_port_back() -> None:
    async with local_server() as server:
        address = server.address
    async with local_server(server__listen=address) as server, speech_stub(address) as stub:
        assert (await converse(stub, [start()]))[0].HasField("call_started")
