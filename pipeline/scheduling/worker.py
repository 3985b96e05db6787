"""The threads that drive an engine. They wait on a condition, never poll; a bad batch fails its members alone."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from pipeline.engines.base import Engine
from pipeline.scheduling.scheduler import Scheduler, SchedulingPolicy
from pipeline.types import CORE_SAMPLE_RATE_HZ, Batch, BatchReport, DecodeRequest, DecodeResult

OnResult = Callable[[DecodeResult], None]
OnBatch = Callable[[BatchReport], None]
SegmentKey = tuple[str, str]

_SHUTTING_DOWN = "the server is shutting down"

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Lane:
    """One batch at a time: an engine and the thread that drives it."""

    engine: Engine
    memory: int
    """Lanes with the same engine remember utterances in the same place."""
    wake: threading.Condition
    is_free: bool = True
    to_release: set[SegmentKey] = field(default_factory=set)
    thread: threading.Thread = field(init=False)


class Worker:
    """Feeds batches of requests to an engine and hands the results back.

    `on_result` callbacks run on a lane's thread: they must not block (hand over with
    `loop.call_soon_threadsafe`). Every submitted request is answered exactly once, unless it is cancelled
    or displaced by a newer interim of its channel while it still waits.
    """

    def __init__(self, lanes: Sequence[Engine], policy: SchedulingPolicy, on_batch: OnBatch | None = None) -> None:
        """One thread a lane. The lanes are instances of one model, or the same instance several times."""
        self.info = lanes[0].info
        self._engines = list(dict.fromkeys(lanes))
        self._scheduler = Scheduler(policy, len(lanes), len(self._engines))
        self._on_batch = on_batch
        self._callbacks: dict[str, tuple[str, OnResult]] = {}
        """Request id to session id and callback."""
        self._open_segments: dict[str, set[SegmentKey]] = {}
        """By session: segments that the engine may cache something for."""
        self._lock = threading.Lock()
        self._stopping = False
        self._lanes = [_Lane(e, self._engines.index(e), threading.Condition(self._lock)) for e in lanes]
        for number, lane in enumerate(self._lanes, start=1):
            name = f"engine-{self.info.model}-{number}"
            lane.thread = threading.Thread(target=self._run, args=[lane], name=name, daemon=True)

    def warm_up(self) -> None:
        """Makes every instance ready, all at once."""
        with ThreadPoolExecutor(len(self._engines)) as pool:
            list(pool.map(lambda engine: engine.warm_up(), self._engines))

    def start(self) -> None:
        """Starts the threads."""
        for lane in self._lanes:
            lane.thread.start()

    def stop(self, timeout_s: float = 30.0) -> None:
        """Answers what still waits with an error, ends the threads and closes the engine."""
        with self._lock:
            self._stopping = True
            dropped = self._scheduler.drain()
            callbacks = [(r.request_id, self._take_callback(r.request_id)) for r in dropped]
            for lane in self._lanes:
                lane.wake.notify()
        for request_id, callback in callbacks:
            if callback is not None:
                callback(DecodeResult(request_id=request_id, error=_SHUTTING_DOWN))
        for lane in self._lanes:
            if lane.thread.is_alive():
                lane.thread.join(timeout_s)
        for engine in self._engines:
            engine.close()

    @property
    def queue_length(self) -> int:
        """Requests that wait."""
        with self._lock:
            return len(self._scheduler)

    def submit(self, request: DecodeRequest, on_result: OnResult) -> None:
        """Queues a request."""
        with self._lock:
            stopped = self._stopping
            if not stopped:
                for old in self._scheduler.add(request, time.monotonic()):
                    self._callbacks.pop(old.request_id, None)
                self._callbacks[request.request_id] = (request.session_id, on_result)
                self._open_segments.setdefault(request.session_id, set()).add(request.segment_key)
                self._wake(self._scheduler.home_of(request))
        if stopped:
            on_result(DecodeResult(request_id=request.request_id, error=_SHUTTING_DOWN))

    def cancel(self, request_id: str) -> None:
        """Drops a request that still waits; one that is with the engine is answered all the same."""
        with self._lock:
            if self._scheduler.cancel_request(request_id):
                self._callbacks.pop(request_id, None)

    def cancel_session(self, session_id: str) -> None:
        """Drops all that a session waits for; its callbacks are not called again."""
        with self._lock:
            self._release(self._open_segments.pop(session_id, set()))
            self._scheduler.cancel(session_id)
            self._callbacks = {r: owned for r, owned in self._callbacks.items() if owned[0] != session_id}

    def _take_callback(self, request_id: str) -> OnResult | None:
        _, callback = self._callbacks.pop(request_id, ("", None))
        return callback

    def _wake(self, memory: int | None = None) -> None:
        """Wakes a lane that has nothing to do; with a memory, one that has it."""
        for lane in self._lanes:
            if lane.is_free and memory in (None, lane.memory):
                lane.wake.notify()
                return

    def _release(self, segments: Iterable[SegmentKey]) -> None:
        """Tells all instances: an utterance may have moved from one to another."""
        for engine_lane in {lane.memory: lane for lane in self._lanes}.values():
            engine_lane.to_release.update(segments)
            engine_lane.wake.notify()

    def _run(self, lane: _Lane) -> None:
        while (batch := self._next_batch(lane)) is not None:
            started_s = time.monotonic()
            results = self._transcribe(lane.engine, batch)
            compute_s = time.monotonic() - started_s
            with self._lock:
                lane.is_free = True
                waits_s = self._scheduler.complete(batch, compute_s)
                self._close_finals(batch)
                answers = [(self._take_callback(result.request_id), result) for result in results]
            for callback, result in answers:
                if callback is not None:
                    callback(result)
            self._report(batch, results, compute_s, waits_s)

    def _close_finals(self, batch: Batch) -> None:
        for request in batch.requests:
            segments = self._open_segments.get(request.session_id, set())
            if request.is_final and request.segment_key in segments:
                segments.remove(request.segment_key)
                self._release([request.segment_key])
            if not segments:
                self._open_segments.pop(request.session_id, None)

    def _next_batch(self, lane: _Lane) -> Batch | None:
        with self._lock:
            while not self._stopping:
                if lane.to_release:
                    lane.engine.release(lane.to_release)
                    lane.to_release = set()
                now_s = time.monotonic()
                num_free = sum(other.is_free for other in self._lanes)
                if (batch := self._scheduler.next_batch(now_s, num_free, lane.memory)) is not None:
                    lane.is_free = False
                    if len(self._scheduler):
                        self._wake()  # what is left may be for another lane
                    return batch
                lane.wake.wait(self._scheduler.wait_s(now_s, lane.memory))
            return None

    def _transcribe(self, engine: Engine, batch: Batch) -> list[DecodeResult]:
        try:
            return self._checked(engine, batch)
        except Exception:
            _log.exception("batch of %d requests failed; each is tried alone", len(batch.requests))
            return [self._transcribe_alone(engine, request) for request in batch.requests]

    def _transcribe_alone(self, engine: Engine, request: DecodeRequest) -> DecodeResult:
        audio_s = len(request.audio) / CORE_SAMPLE_RATE_HZ
        try:
            return self._checked(engine, Batch(requests=(request,), padded_audio_s=audio_s))[0]
        except Exception as error:
            _log.exception("request %s (%.1f s of audio) failed alone too", request.request_id, audio_s)
            return DecodeResult(request_id=request.request_id, error=f"{type(error).__name__} in the engine")

    def _checked(self, engine: Engine, batch: Batch) -> list[DecodeResult]:
        results = engine.transcribe(batch)
        if [r.request_id for r in results] != [r.request_id for r in batch.requests]:
            # Words must never reach another call.
            raise RuntimeError("the engine's results do not match its batch")
        return results

    def _report(self, batch: Batch, results: list[DecodeResult], compute_s: float, waits_s: tuple[float, ...]) -> None:
        if self._on_batch is None:
            return
        report = BatchReport(
            model=self.info.model,
            num_requests=len(batch.requests),
            num_finals=sum(r.is_final for r in batch.requests),
            audio_s=sum(len(r.audio) for r in batch.requests) / CORE_SAMPLE_RATE_HZ,
            compute_s=compute_s,
            queue_wait_s=waits_s,
            num_failed=sum(r.error is not None for r in results),
        )
        self._on_batch(report)
