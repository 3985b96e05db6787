"""What the server tells about itself, and what it must not tell."""

import asyncio
import json
import logging
import re
import urllib.request

import grpc
import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pipeline.engines.scripted import ScriptedEngine
from pipeline.errors import EngineError
from pipeline.types import DecodeRequest
from server.errors import StartupError
from server.logs import configure_logging
from server.settings import TelemetrySettings
from server.telemetry import Telemetry
from tests.support.audio import bursts, linear16
from tests.support.server import audio, config, converse, converse_live, local_server, speech_stub, start
from tests.support.sounds import call_sounds, keys

SPEECH = linear16(bursts([(300, 0), (1_500, 0.3), (800, 0)]))
HEARD_BYTES = 1_400 * 16
SECRET = "zebracrossing"
PROMETHEUS = {"telemetry__prometheus_listen": "127.0.0.1:0"}


def _scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
        return response.read().decode()


def _value(metrics: str, name: str) -> float:
    """Sum over the labels."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", metrics, re.MULTILINE))


def _taking_back(request: DecodeRequest) -> str:
    if request.hints.language_code == "fr":
        raise EngineError("French fails")
    return SECRET if request.is_final else f"{SECRET} revision{request.revision}"


async def test_prometheus_shows_what_calls_cost() -> None:
    engine = ScriptedEngine(script=_taking_back, delay_s=0.01)
    async with local_server(engines=[engine], **PROMETHEUS) as server, speech_stub(server.address) as stub:
        port = server.lifecycle.telemetry.prometheus_port
        live = stub.StreamingRecognize()
        await live.write(start())
        await live.read()
        for _ in range(2):
            heard = [start(interim_results=True), audio(SPEECH[:HEARD_BYTES])]
            await converse_live(stub, heard, [audio(SPEECH[HEARD_BYTES:])])
        await converse(stub, [start(config(language_code="fr")), audio(SPEECH)])
        await stub.StreamingRecognize(iter([start(config(sample_rate_hertz=1))])).code()
        metrics = await asyncio.to_thread(_scrape, port)
        live.cancel()
        await server.lifecycle.admission.wait_until_idle()
        after = await asyncio.to_thread(_scrape, port)
    assert _value(metrics, "talkpath_calls_active") == 1
    assert _value(after, "talkpath_calls_active") == 0
    assert 'talkpath_calls_total{method="StreamingRecognize",status="OK"} 3.0' in metrics
    assert 'talkpath_calls_total{method="StreamingRecognize",status="INVALID_ARGUMENT"} 1.0' in metrics
    assert _value(metrics, "talkpath_audio_seconds_total") == pytest.approx(3 * 2.6)
    assert _value(metrics, "talkpath_decode_rtf_count") >= 2
    assert _value(metrics, "talkpath_decode_queue_wait_seconds_count") >= 4
    assert _value(metrics, "talkpath_decode_batch_size_count") >= 2
    assert _value(metrics, "talkpath_decode_failures_total") == 1
    assert _value(metrics, "talkpath_finalization_latency_seconds_count") == 3
    assert _value(metrics, "talkpath_first_interim_latency_seconds_count") == 2
    assert _value(metrics, "talkpath_final_words_total") == 2
    assert _value(metrics, "talkpath_interim_words_taken_back_total") >= 1
    assert "talkpath_decode_queue_length" in metrics
    assert SECRET not in metrics


async def test_finals_without_words_are_counted_with_their_reason() -> None:
    engine = ScriptedEngine(script=lambda _: "")
    async with local_server(engines=[engine], **PROMETHEUS) as server, speech_stub(server.address) as stub:
        await converse(stub, [start(), audio(SPEECH)])
        metrics = await asyncio.to_thread(_scrape, server.lifecycle.telemetry.prometheus_port)
    (line,) = [m for m in metrics.splitlines() if m.startswith("talkpath_finals_without_words_total{")]
    assert 'reason="NO_SPEECH"' in line
    assert line.endswith(" 1.0")


def test_prometheus_port_in_use() -> None:
    first = Telemetry(TelemetrySettings(prometheus_listen="127.0.0.1:0"))
    try:
        with pytest.raises(StartupError, match="telemetry.prometheus_listen"):
            Telemetry(TelemetrySettings(prometheus_listen=f"127.0.0.1:{first.prometheus_port}"))
    finally:
        first.shutdown()


async def test_spans_follow_the_callers_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    monkeypatch.setattr("server.telemetry.BatchSpanProcessor", lambda _: SimpleSpanProcessor(exporter))
    monkeypatch.setattr("server.telemetry._otlp_span_exporter", lambda _: exporter)
    trace_id, parent_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    async with (
        local_server(engines=[ScriptedEngine(script=_taking_back)]) as server,
        speech_stub(server.address) as stub,
    ):
        traced = (("traceparent", f"00-{trace_id}-{parent_id}-01"), ("x-call-id", "c-1"))
        await converse(stub, [start(), audio(SPEECH)], metadata=traced)
        await converse(stub, [start()], metadata=(("traceparent", "nonsense"),))
        await stub.StreamingRecognize(iter([])).code()
    first, second, wrong = exporter.get_finished_spans()
    assert format(first.context.trace_id, "032x") == trace_id
    assert format(first.parent.span_id, "016x") == parent_id
    assert first.name == "Speech/StreamingRecognize"
    assert first.attributes["talkpath.call_id"] == "c-1"
    assert [event.name for event in first.events] == ["decode requested", "decode answered", "final sent"]
    assert second.parent is None
    assert (second.attributes["rpc.grpc.status"], second.status.is_ok) == ("OK", True)
    assert (wrong.attributes["rpc.grpc.status"], wrong.status.is_ok) == ("INVALID_ARGUMENT", False)
    assert SECRET not in first.to_json()


async def test_logs_hold_no_words(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    def script(request: DecodeRequest) -> str:
        if request.hints.language_code == "fr":
            raise EngineError("French fails")
        return SECRET

    with caplog.at_level(logging.DEBUG):
        async with (
            local_server(engines=[ScriptedEngine(script=script, raise_on=[2])]) as server,
            speech_stub(server.address) as stub,
        ):
            for code in ("en", "en", "fr"):
                settings = start(config(language_code=code), interim_results=True)
                responses = await converse(stub, [settings, audio(SPEECH)], metadata=(("x-call-id", "c-9"),))
            with pytest.raises(grpc.aio.AioRpcError):
                await converse(stub, [start(), start()])
        assert not any(SECRET in str(response) for response in responses)  # the failing one
    captured = capfd.readouterr()
    ended = [record for record in caplog.records if record.message == "call ended"]
    assert [record.status for record in ended] == ["OK", "OK", "OK", "INVALID_ARGUMENT"]
    assert ended[0].call_id == "c-9"
    assert ended[0].audio_s == pytest.approx(2.6)
    assert "streaming_config" in ended[3].reason
    assert SECRET not in caplog.text + captured.out + captured.err
    assert not any(SECRET in repr(vars(record)) for record in caplog.records)


def test_logs_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        configure_logging(TelemetrySettings(log_level="warning"))
        logging.getLogger("server.x").warning("hello", extra={"call_id": "c"})
        logging.getLogger("server.x").info("too quiet")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert json.loads(line)["call_id"] == "c"


async def test_scenes_are_counted_once_each() -> None:
    heard = audio(linear16(call_sounds([(300, ()), *keys("12"), (300, ()), (1_000, (440, 480)), (500, ())])))
    async with local_server(**PROMETHEUS) as server, speech_stub(server.address) as stub:
        await converse(stub, [start(enable_scene_events=True), heard])
        metrics = await asyncio.to_thread(_scrape, server.lifecycle.telemetry.prometheus_port)
    assert 'talkpath_scenes_total{kind="DTMF",model="scripted:demo"} 2.0' in metrics
    assert 'talkpath_scenes_total{kind="RINGBACK",model="scripted:demo"} 1.0' in metrics
