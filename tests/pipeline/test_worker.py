import threading

import numpy as np
import pytest

from pipeline.engines.base import EngineInfo
from pipeline.scheduling.scheduler import SchedulingPolicy
from pipeline.scheduling.worker import Worker
from pipeline.types import DecodeResult
from tests.pipeline.test_scheduler import request

WAIT_S = 10.0


class ControlledEngine:
    """Answers when it is let; fails on the audio that holds this mark."""

    info = EngineInfo(model="controlled", language_codes=("en",), precision="none", device="none", max_audio_ms=30_000)

    def __init__(self):
        self.may_run = threading.Event()
        self.may_run.set()
        self.running = threading.Event()
        self.batches = []
        self.swap_results = False
        self.closed = False
        self.released = set()
        self.release_called = threading.Event()

    def warm_up(self):
        pass

    def transcribe(self, batch):
        self.running.set()
        assert self.may_run.wait(WAIT_S)
        self.batches.append(batch)
        if any(np.any(r.audio == 0.5) for r in batch.requests):
            raise ValueError("bad audio")
        results = [DecodeResult(request_id=r.request_id) for r in batch.requests]
        return results[::-1] if self.swap_results else results

    def release(self, segment_keys):
        self.released |= set(segment_keys)
        self.release_called.set()

    def close(self):
        self.closed = True


class Inbox:
    def __init__(self):
        self.results = {}
        self._changed = threading.Condition()

    def __call__(self, result):
        with self._changed:
            assert result.request_id not in self.results
            self.results[result.request_id] = result
            self._changed.notify_all()

    def wait_for(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.results) >= count, WAIT_S)
        return self.results


@pytest.fixture
def engine():
    return ControlledEngine()


@pytest.fixture
def reports():
    return []


@pytest.fixture
def worker(engine, reports):
    worker = Worker([engine], SchedulingPolicy(max_batch_size=4), reports.append)
    worker.start()
    yield worker
    engine.may_run.set()
    worker.stop()


def hold(engine, worker, inbox):
    """Keeps the engine busy with one request."""
    engine.may_run.clear()
    engine.running.clear()
    worker.submit(request("held", is_final=True), inbox)
    assert engine.running.wait(WAIT_S)


def bad(session):
    broken = request(session, is_final=True)
    broken.audio[:] = 0.5
    return broken


def test_requests_of_several_calls_share_a_batch(engine, worker, reports):
    inbox = Inbox()
    hold(engine, worker, inbox)
    for session in "abc":
        worker.submit(request(session), inbox)
    engine.may_run.set()
    inbox.wait_for(4)
    assert [len(b.requests) for b in engine.batches] == [1, 3]


def test_a_bad_request_fails_alone(engine, worker):
    inbox = Inbox()
    hold(engine, worker, inbox)
    for each in (request("a", is_final=True), bad("b"), request("c", is_final=True)):
        worker.submit(each, inbox)
    engine.may_run.set()
    results = inbox.wait_for(4)
    assert "ValueError" in results["b/1-1/1"].error
    assert "bad audio" not in results["b/1-1/1"].error
    assert results["a/1-1/1"].error is None
    assert results["c/1-1/1"].error is None


def test_results_in_the_wrong_order_reach_nobody(engine, worker):
    inbox = Inbox()
    hold(engine, worker, inbox)
    engine.swap_results = True
    worker.submit(request("a"), inbox)
    worker.submit(request("b"), inbox)
    engine.may_run.set()
    results = inbox.wait_for(3)
    assert results["a/1-1/1"].request_id == "a/1-1/1"


def test_cancelled_requests_are_not_decoded(engine, worker):
    inbox = Inbox()
    hold(engine, worker, inbox)
    worker.submit(request("a"), inbox)
    worker.submit(request("b"), inbox)
    worker.submit(request("b", is_final=True, segment=2), inbox)
    worker.submit(request("c"), inbox)
    worker.cancel("a/1-1/1")
    worker.cancel_session("b")
    engine.may_run.set()
    assert set(inbox.wait_for(2)) == {"held/1-1/1", "c/1-1/1"}


def test_a_session_that_left_gets_no_late_answer(engine, worker):
    inbox = Inbox()
    hold(engine, worker, inbox)
    worker.cancel_session("held")
    worker.submit(request("a"), inbox)
    engine.may_run.set()
    assert set(inbox.wait_for(1)) == {"a/1-1/1"}


def test_sessions_whose_names_begin_alike_are_apart(engine, worker):
    inbox = Inbox()
    hold(engine, worker, inbox)
    worker.submit(request("a/b"), inbox)
    worker.cancel_session("a")
    engine.may_run.set()
    assert "a/b/1-1/1" in inbox.wait_for(2)


def test_stopping_answers_what_waits(engine):
    worker, inbox = Worker([engine], SchedulingPolicy()), Inbox()
    worker.start()
    hold(engine, worker, inbox)
    worker.submit(request("a", is_final=True), inbox)
    stopper = threading.Thread(target=worker.stop)
    stopper.start()
    assert "shutting down" in inbox.wait_for(1)["a/1-1/1"].error
    engine.may_run.set()
    stopper.join(WAIT_S)
    assert engine.closed
    worker.submit(request("late"), inbox)
    assert "shutting down" in inbox.results["late/1-1/1"].error


def test_reports_say_what_a_batch_cost(engine, worker, reports):
    inbox = Inbox()
    worker.submit(request("a", seconds=2.0, is_final=True), inbox)
    inbox.wait_for(1)
    worker.stop()
    report = reports[0]
    assert (report.model, report.num_requests, report.num_finals, report.num_failed) == ("controlled", 1, 1, 0)
    assert report.audio_s == 2.0
    assert report.compute_s >= 0
    assert len(report.queue_wait_s) == 1


def test_the_engine_is_told_which_segments_are_over(engine, worker):
    inbox = Inbox()
    worker.submit(request("a"), inbox)
    inbox.wait_for(1)
    assert not engine.released
    worker.submit(request("a", revision=2, is_final=True), inbox)
    assert engine.release_called.wait(WAIT_S)
    assert engine.released == {("a", "1-1")}


def test_the_engine_is_told_when_a_session_leaves(engine, worker):
    inbox = Inbox()
    worker.submit(request("a"), inbox)
    inbox.wait_for(1)
    worker.cancel_session("a")
    assert engine.release_called.wait(WAIT_S)
    assert engine.released == {("a", "1-1")}
