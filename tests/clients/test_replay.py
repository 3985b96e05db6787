"""The replay harness against a server that answers second by second, in process and as a command."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
import soundfile
from typer.testing import CliRunner

from clients.recognizer import Recognizer
from clients.replay.cli import app
from clients.replay.plan import CallOptions, plan_calls
from clients.replay.player import PlannedCall, PlayOptions, TimedEvent, play_all
from clients.replay.summary import summarize
from clients.types import Result
from talkpath.speech.v1 import speech_pb2 as pb
from tests.clients.fake_server import FakeSpeech, Request, Response, SecondBySecond, script_server, serving

SCRIPT = {1: ["hello there", "how are you"], 2: ["good morning", "fine thanks"]}
NUM_SECONDS = 2


class ServerThread:
    """A fake server with an event loop of its own, for commands that bring theirs."""

    def __init__(self, servicer: FakeSpeech) -> None:
        self.servicer = servicer
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        self._stop, self._loop = asyncio.Event(), asyncio.get_running_loop()
        async with serving(self.servicer) as self.address:
            self._ready.set()
            await self._stop.wait()

    def __enter__(self) -> "ServerThread":
        self._thread.start()
        assert self._ready.wait(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(5)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(script_server(SCRIPT)) as running:
        yield running


@pytest.fixture
def call_path(tmp_path: Path) -> Path:
    path = tmp_path / "calls" / "two.wav"
    path.parent.mkdir()
    soundfile.write(path, np.zeros((8000 * NUM_SECONDS, 2)), 8000, subtype="ULAW")
    return path


@pytest.fixture
def manifest(call_path: Path) -> Path:
    row = {
        "path": call_path.name,
        "kind": "sample-call",
        "duration_s": NUM_SECONDS,
        "language": "en",
        "channels": [
            {"channel_tag": 1, "role": "agent", "text": "Hello there. How are you?"},
            {"channel_tag": 2, "role": "customer", "text": "Good evening, fine thanks!"},
        ],
        "utterances": [{"channel_tag": 1, "start_s": 0.1, "end_s": 0.8, "text": "Hello there."}],
    }
    path = call_path.with_name("manifest.jsonl")
    path.write_text(json.dumps(row) + "\n")
    return path


def replay(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def read_events(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_manifest_is_played_scored_and_reported(server, manifest, tmp_path):
    events_path, report = tmp_path / "out" / "events.jsonl", tmp_path / "report"
    began_s = time.monotonic()
    outcome = replay(
        "--reference", manifest, "--server", server.address, "--events", events_path, "--report", report, "--speed", 4
    )
    assert outcome.exit_code == 0, outcome.output
    assert time.monotonic() - began_s > NUM_SECONDS / 4
    assert "00:01.0  customer   fine thanks" in outcome.output
    assert " …" not in outcome.output
    assert "11.11 %" in outcome.output  # one of nine words

    events = read_events(events_path)
    assert {row["kind"] for row in events} == {
        "call_started",
        "interim",
        "final",
        "speech_begin",
        "speech_end",
        "ack",
    }
    finals = [(row["channel_tag"], row["text"], row["stream"]) for row in events if row["kind"] == "final"]
    assert sorted(finals) == [
        (1, "hello there", 0),
        (1, "how are you", 0),
        (2, "fine thanks", 0),
        (2, "good morning", 0),
    ]
    times_s = [row["t_wall_s"] for row in events]
    assert times_s == sorted(times_s)
    assert 0.24 < next(row["t_wall_s"] for row in events if row["kind"] == "final") < 2.0

    content = json.loads((report / "report.json").read_text())
    assert content["figures"]["wer"] == pytest.approx(1 / 9)
    assert content["figures"]["audio_lost_ms"] == 0
    assert content["figures"]["first_interim_latency_s"]["count"] == 4
    assert content["settings"]["speed"] == 4.0
    page = (report / "report.html").read_text()
    assert "<del>evening</del> <ins>morning</ins>" in page
    assert page.count("<svg") == 3
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#)""", page), "the page must not need anything else"


def test_the_bytes_of_the_file_reach_the_server(server, call_path):
    outcome = replay(
        call_path, "--server", server.address, "--speed", 0, "--channels", "agent,customer", "--chunk-ms", 30
    )
    assert outcome.exit_code == 0, outcome.output
    config, *audio = server.servicer.requests[0]
    assert config.streaming_config.config.encoding == pb.RecognitionConfig.MULAW
    assert dict(config.streaming_config.call.channel_roles) == {1: pb.CallInfo.AGENT, 2: pb.CallInfo.CUSTOMER}
    chunks = [request.audio_content for request in audio]
    assert {len(chunk) for chunk in chunks[:-1]} == {30 * 8 * 2}
    assert b"".join(chunks) == call_path.read_bytes()[-8000 * 2 * NUM_SECONDS :]
    assert "not measured" in outcome.output


def test_interims_without_a_terminal_only_when_asked(server, call_path):
    outcome = replay(call_path, "--server", server.address, "--speed", 0, "--show-interims")
    assert "(channel 1) hello …" in outcome.output
    assert "no references" in outcome.output


def test_many_calls_at_once_are_each_played_once(server, manifest, tmp_path):
    for number in range(5):
        soundfile.write(tmp_path / "calls" / f"mono{number}.wav", np.zeros(8000), 8000)
    outcome = replay(
        tmp_path / "calls",
        "--server",
        server.address,
        "--speed",
        0,
        "--concurrency",
        4,
        "--repeat",
        2,
        "--reference",
        manifest,
    )
    assert outcome.exit_code == 0, outcome.output
    assert len(server.servicer.requests) == 12
    assert re.search(r"calls\s+12, 0 failed", outcome.output)
    assert re.search(r"2 of 18 words", outcome.output)


def test_filter_and_limit_choose_among_named_files(server, call_path, tmp_path):
    for number in range(5):
        soundfile.write(tmp_path / "calls" / f"mono{number}.wav", np.zeros(800), 8000)
    outcome = replay(tmp_path / "calls", "--server", server.address, "--speed", 0, "--filter", "mono", "--limit", 3)
    assert outcome.exit_code == 0, outcome.output
    assert len(server.servicer.requests) == 3


class FailsSecondCall:
    """Refuses every call after the first."""

    def __init__(self) -> None:
        self.num_calls = 0

    def __call__(self) -> object:
        self.num_calls += 1
        return SecondBySecond(SCRIPT) if self.num_calls == 1 else self._refuse

    @staticmethod
    async def _refuse(requests: AsyncIterator[Request], context: grpc.aio.ServicerContext) -> AsyncIterator[Response]:
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "20 calls are live, the limit is 20")
        yield Response()


def test_a_failed_call_is_counted_and_fails_the_command(call_path, tmp_path):
    with ServerThread(FakeSpeech(FailsSecondCall())) as server:
        events_path = tmp_path / "events.jsonl"
        outcome = replay(
            call_path,
            "--server",
            server.address,
            "--speed",
            0,
            "--repeat",
            2,
            "--events",
            events_path,
            "--report",
            tmp_path,
        )
    assert outcome.exit_code == 1
    assert "the limit is 20" in outcome.output
    assert "1 x RESOURCE_EXHAUSTED" in outcome.output
    last = read_events(events_path)[-1]
    assert (last["kind"], last["status"], last["stream"]) == ("error", "RESOURCE_EXHAUSTED", 1)
    assert json.loads((tmp_path / "report.json").read_text())["figures"]["errors_by_status"] == {
        "RESOURCE_EXHAUSTED": 1
    }
    assert "Failed calls" in (tmp_path / "report.html").read_text()


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_wrong_usage_is_one_clear_line(server, call_path, tmp_path):
    at = ("--server", server.address)
    for arguments, expected in [
        ((call_path, "--server", f"127.0.0.1:{closed_port()}"), "start one with `talkpath-server --model tiny.en`"),
        ((), "nothing to play; name recordings, or a manifest with --reference"),
        ((tmp_path / "no.wav", *at), "no.wav: no such file or folder"),
        ((call_path, *at, "--channels", "agent"), None),
        ((call_path, *at, "--channels", "agent,boss"), "role 'boss' is not known"),
        ((call_path, *at, "--channels", "agent,customer,ivr"), "has 2 channels, --channels names 3"),
        ((call_path, *at, "--reference", tmp_path / "no.jsonl"), "no.jsonl"),
        ((call_path, *at, "--filter", "zzz"), "no recording is left to play"),
        ((call_path, *at, "--hints", tmp_path / "no.txt"), "no.txt: "),
        ((call_path, *at, "--hint", "Ada", "--hint", "Fennimar Plus"), None),
    ]:
        outcome = replay(*arguments, "--speed", "0")
        if expected is None:
            assert outcome.exit_code == 0, outcome.output
            continue
        assert outcome.exit_code == 2, outcome.output
        assert expected in outcome.output
        assert outcome.output.count("\n") == 1


def test_the_command_itself(server, call_path):
    command = [sys.executable, "-m", "clients.replay", str(call_path), "--server", server.address, "--speed", "0"]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert outcome.returncode == 0, outcome.stderr
    assert "good morning" in outcome.stdout
    assert outcome.stderr == ""


class Witness:
    """Counts how many calls are live at once."""

    def __init__(self) -> None:
        self.live, self.most_live, self.finals = 0, 0, 0

    def call_began(self, call: PlannedCall) -> None:
        self.live += 1
        self.most_live = max(self.most_live, self.live)

    def audio_sent(self, call: PlannedCall, sent_ms: float) -> None:
        assert 0 < sent_ms <= call.duration_s * 1000

    def event_received(self, call: PlannedCall, event: TimedEvent) -> None:
        self.finals += isinstance(event.event, Result) and event.event.is_final

    def call_ended(self, trace) -> None:
        self.live -= 1


async def test_no_more_calls_at_once_than_asked(call_path):
    witness = Witness()
    async with serving(script_server(SCRIPT)) as address, Recognizer(address) as recognizer:
        limits = (await recognizer.server_info()).limits
        calls = plan_calls([call_path], CallOptions(), limits, repeat=7)
        traces = await play_all(recognizer, calls, PlayOptions(speed=0, concurrency=3), witness)
    assert [trace.call.index for trace in traces] == list(range(7))
    assert (witness.most_live, witness.live, witness.finals) == (3, 0, 28)
    summary = summarize(traces, 1.0, {})
    assert summary.audio_s == 7 * NUM_SECONDS
    assert summary.failures == ()


async def test_real_time_pace(call_path):
    async with serving(script_server(SCRIPT)) as address, Recognizer(address) as recognizer:
        limits = (await recognizer.server_info()).limits
        calls = plan_calls([call_path], CallOptions(), limits)
        (trace,) = await play_all(recognizer, calls, PlayOptions(speed=1.0), Witness())
    lateness_s = [chunk.t_s - chunk.end_ms / 1000 for chunk in trace.sent]
    assert min(lateness_s) >= 0
    assert np.median(lateness_s) < 0.05
    assert len(trace.sent) == 10 * NUM_SECONDS
    assert trace.acknowledged_ms == trace.sent_ms == 1000 * NUM_SECONDS


async def test_a_file_that_disappears_fails_its_call_alone(call_path):
    async with serving(script_server(SCRIPT)) as address, Recognizer(address) as recognizer:
        calls = plan_calls([call_path], CallOptions(), (await recognizer.server_info()).limits)
        call_path.unlink()
        (trace,) = await play_all(recognizer, calls, PlayOptions(speed=0), Witness())
    assert trace.error is not None
    assert trace.error.status == "UNREADABLE"
