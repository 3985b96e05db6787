"""The threads that drive an engine. They wait on a condition, never poll; a bad batch fails its members alone."""

import logging
import threading
import time
from collections.abc import Callable

from pipeline.engines.base import Engine
from pipeline.scheduling.scheduler import Scheduler, SchedulingPolicy
from pipeline.types import CORE_SAMPLE_RATE_HZ, Batch, BatchReport, DecodeRequest, DecodeResult

OnResult = Callable[[DecodeResult], None]
OnBatch = Callable[[BatchReport], None]
SegmentKey = tuple[str, str]

_SHUTTING_DOWN = "the server is shutting down"

_log = logging.getLogger(__name__)


class Worker:
    """Feeds batches of requests to an engine and hands the results back.

    `on_result` callbacks run on the worker's thread: they must not block (hand over with
    `loop.call_soon_threadsafe`). Every submitted request is answered exactly once, unless it is cancelled
    or displaced by a newer interim of its channel while it still waits.
    """

    def __init__(self, engine: Engine, policy: SchedulingPolicy, on_batch: OnBatch | None = None) -> None:
        """As many batches as the engine has lanes go through it at the same time, each on a thread of its own."""
        self.engine = engine
        num_lanes = engine.info.num_lanes
        self._free_lanes = num_lanes
        self._scheduler = Scheduler(policy, num_lanes)
        self._on_batch = on_batch
        self._callbacks: dict[str, tuple[str, OnResult]] = {}
        """Request id to session id and callback."""
        self._open_segments: dict[str, set[SegmentKey]] = {}
        """By session: segments that the engine may cache something for."""
        self._to_release: set[SegmentKey] = set()
        self._wake = threading.Condition()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._run, name=f"engine-{engine.info.model}-{number}", daemon=True)
            for number in range(1, num_lanes + 1)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 30.0) -> None:
        """Answers what still waits with an error, ends the threads and closes the engine."""
        with self._wake:
            self._stopping = True
            dropped = self._scheduler.drain()
            callbacks = [(r.request_id, self._take_callback(r.request_id)) for r in dropped]
            self._wake.notify_all()
        for request_id, callback in callbacks:
            if callback is not None:
                callback(DecodeResult(request_id=request_id, error=_SHUTTING_DOWN))
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout_s)
        self.engine.close()

    @property
    def queue_length(self) -> int:
        """Requests that wait."""
        with self._wake:
            return len(self._scheduler)

    def submit(self, request: DecodeRequest, on_result: OnResult) -> None:
        """Queues a request."""
        with self._wake:
            stopped = self._stopping
            if not stopped:
                for old in self._scheduler.add(request, time.monotonic()):
                    self._callbacks.pop(old.request_id, None)
                self._callbacks[request.request_id] = (request.session_id, on_result)
                self._open_segments.setdefault(request.session_id, set()).add(request.segment_key)
                self._wake.notify()
        if stopped:
            on_result(DecodeResult(request_id=request.request_id, error=_SHUTTING_DOWN))

    def cancel(self, request_id: str) -> None:
        """Drops a request that still waits; one that is with the engine is answered all the same."""
        with self._wake:
            if self._scheduler.cancel_request(request_id):
                self._callbacks.pop(request_id, None)

    def cancel_session(self, session_id: str) -> None:
        """Drops all that a session waits for; its callbacks are not called again."""
        with self._wake:
            self._to_release |= self._open_segments.pop(session_id, set())
            self._wake.notify()
            self._scheduler.cancel(session_id)
            self._callbacks = {r: owned for r, owned in self._callbacks.items() if owned[0] != session_id}

    def _take_callback(self, request_id: str) -> OnResult | None:
        _, callback = self._callbacks.pop(request_id, ("", None))
        return callback

    def _run(self) -> None:
        while (batch := self._next_batch()) is not None:
            started_s = time.monotonic()
            results = self._transcribe(batch)
            compute_s = time.monotonic() - started_s
            with self._wake:
                self._free_lanes += 1
                waits_s = self._scheduler.complete(batch, compute_s)
                self._wake.notify()  # an interim may have waited for the one before it
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
                self._to_release.add(request.segment_key)
            if not segments:
                self._open_segments.pop(request.session_id, None)

    def _next_batch(self) -> Batch | None:
        with self._wake:
            while not self._stopping:
                self._release_segments()
                now_s = time.monotonic()
                if (batch := self._scheduler.next_batch(now_s, self._free_lanes)) is not None:
                    self._free_lanes -= 1
                    if len(self._scheduler) and self._free_lanes:
                        self._wake.notify()  # what is left is for another lane
                    return batch
                self._wake.wait(self._scheduler.wait_s(now_s))
            return None

    def _release_segments(self) -> None:
        if self._to_release:
            self.engine.release(self._to_release)
            self._to_release = set()

    def _transcribe(self, batch: Batch) -> list[DecodeResult]:
        try:
            return self._checked(batch)
        except Exception:
            _log.exception("batch of %d requests failed; each is tried alone", len(batch.requests))
            return [self._transcribe_alone(request) for request in batch.requests]

    def _transcribe_alone(self, request: DecodeRequest) -> DecodeResult:
        audio_s = len(request.audio) / CORE_SAMPLE_RATE_HZ
        try:
            return self._checked(Batch(requests=(request,), padded_audio_s=audio_s))[0]
        except Exception as error:
            _log.exception("request %s (%.1f s of audio) failed alone too", request.request_id, audio_s)
            return DecodeResult(request_id=request.request_id, error=f"{type(error).__name__} in the engine")

    def _checked(self, batch: Batch) -> list[DecodeResult]:
        results = self.engine.transcribe(batch)
        if [r.request_id for r in results] != [r.request_id for r in batch.requests]:
            # Words must never reach another call.
            raise RuntimeError("the engine's results do not match its batch")
        return results

    def _report(self, batch: Batch, results: list[DecodeResult], compute_s: float, waits_s: tuple[float, ...]) -> None:
        if self._on_batch is None:
            return
        report = BatchReport(
            model=self.engine.info.model,
            num_requests=len(batch.requests),
            num_finals=sum(r.is_final for r in batch.requests),
            audio_s=sum(len(r.audio) for r in batch.requests) / CORE_SAMPLE_RATE_HZ,
            compute_s=compute_s,
            queue_wait_s=waits_s,
            num_failed=sum(r.error is not None for r in results),
        )
        self._on_batch(report)
