"""Engines in processes of their own: the same answers, and nothing lost but what a dead process was asked."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import psutil
import pytest

from pipeline.engines.hosting import hosted
from pipeline.engines.hosting.hosted import EngineHost, HostedEngine
from pipeline.engines.scripted import ScriptedEngine
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.errors import EngineError, InvalidConfigError, ModelNotFoundError
from pipeline.scheduling.scheduler import SchedulingPolicy
from pipeline.scheduling.worker import Worker
from tests.engines.support import batch, clip, request
from tests.pipeline.test_worker import Inbox

_WAIT_S = 10.0


@pytest.fixture
def lane() -> Iterator[HostedEngine]:
    engine = EngineHost(partial(ScriptedEngine, "scripted:hosted")).lanes()[0]
    engine.warm_up()
    yield engine
    engine.close()


def _answers(engine: HostedEngine) -> bool:
    return bool(engine.transcribe(batch(request(clip("order"))))[0].alternatives)


def _wait_until(is_true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + _WAIT_S
    while not is_true():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_it_answers_as_the_engine_itself(lane: HostedEngine) -> None:
    asked = batch(request(clip("order"), word_details=True), request(clip("address"), number=2, is_final=False))
    here = ScriptedEngine("scripted:hosted")
    assert lane.info == here.info
    assert lane.transcribe(asked) == here.transcribe(asked)
    lane.release([("call", "1")])
    assert lane.transcribe(asked) == here.transcribe(asked)


def test_whisper_says_the_same_in_a_process_of_its_own(tiny: WhisperEngine) -> None:
    host = EngineHost(partial(WhisperEngine, WhisperSettings(model="tiny.en", num_lanes=2)))
    lanes = host.lanes()
    asked = batch(request(clip("order"), word_details=True))
    expected = tiny.transcribe(asked)
    try:
        for each in lanes:
            each.warm_up()
        assert len(lanes) == 2
        assert [each.transcribe(asked) for each in lanes] == [expected, expected]
    finally:
        for each in lanes:
            each.close()


def test_a_process_that_dies_is_replaced(lane: HostedEngine) -> None:
    first = lane._pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with pytest.raises(EngineError, match="has ended"):
        _answers(lane)
    assert _answers(lane)
    assert lane._pid != first


def test_a_host_that_dies_is_replaced(lane: HostedEngine) -> None:
    lane._host._process.kill()
    lane._host._process.wait()
    assert _answers(lane)  # the lane itself lives on
    assert lane._pid is not None
    os.kill(lane._pid, signal.SIGKILL)
    with pytest.raises(EngineError, match="has ended"):
        _answers(lane)
    assert _answers(lane)


def test_a_process_that_hangs_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EngineHost(partial(ScriptedEngine, delay_s=60.0)).lanes()[0]
    engine.warm_up()
    pid = engine._pid
    assert pid is not None
    monkeypatch.setattr(hosted, "_BATCH_TIMEOUT_S", 0.3)
    with pytest.raises(EngineError, match="no answer for 0.3 s"):
        _answers(engine)
    _wait_until(lambda: not psutil.pid_exists(pid))
    engine.close()


def test_a_call_goes_on_when_a_lane_dies(lane: HostedEngine) -> None:
    worker, inbox = Worker([lane], SchedulingPolicy()), Inbox()
    worker.start()
    worker.submit(request(clip("order"), number=1), inbox)
    inbox.wait_for(1)
    assert lane._pid is not None
    os.kill(lane._pid, signal.SIGKILL)
    worker.submit(request(clip("order"), number=2), inbox)
    results = inbox.wait_for(2)
    assert all(result.error is None and result.alternatives for result in results.values())


def test_a_batch_that_raises_says_where(lane: HostedEngine) -> None:
    engine = EngineHost(partial(ScriptedEngine, raise_on=(1,))).lanes()[0]
    engine.warm_up()
    with pytest.raises(EngineError, match="batch 1 fails") as caught:
        _answers(engine)
    assert "in the engine's process" in caught.value.__notes__[0]
    assert _answers(engine)
    engine.close()


def test_a_model_that_cannot_be_loaded_is_the_callers_error() -> None:
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        EngineHost(partial(WhisperEngine, WhisperSettings(model="/nowhere/model")))


def test_a_process_that_ends_while_loading_is_told() -> None:
    with pytest.raises(EngineError, match="ended while its model was loaded"):
        EngineHost(partial(os._exit, 3))  # type: ignore[arg-type]


def test_errors_with_several_arguments_travel() -> None:
    error = pickle.loads(pickle.dumps(InvalidConfigError("vad", "bad")))
    assert (str(error), error.field, error.message) == ("vad: bad", "vad", "bad")


def test_signals_are_left_to_the_server(lane: HostedEngine) -> None:
    assert lane._pid is not None
    for pid in (lane._pid, lane._host._process.pid):
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
    time.sleep(0.2)
    assert _answers(lane)
    assert lane._host._process.poll() is None


def test_closing_ends_all_processes(lane: HostedEngine) -> None:
    host = lane._host
    other = HostedEngine(host)
    other.warm_up()
    pids = [lane._pid, other._pid, host._process.pid]
    other.close()
    assert _answers(lane)
    lane.close()
    _wait_until(lambda: not any(pid is not None and psutil.pid_exists(pid) for pid in pids))


def test_nothing_outlives_a_server_that_is_killed() -> None:
    program = (
        "from functools import partial; from pipeline.engines.hosting.hosted import EngineHost\n"
        "from pipeline.engines.scripted import ScriptedEngine\n"
        "lane = EngineHost(partial(ScriptedEngine, 'scripted:x')).lanes()[0]; lane.warm_up()\n"
        "print(lane._pid, lane._host._process.pid, flush=True); input()"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=os.getcwd()
    )
    with server:
        assert server.stdout is not None
        pids = [int(pid) for pid in server.stdout.readline().split()]
        assert len(pids) == 2
        server.kill()
    _wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids))
