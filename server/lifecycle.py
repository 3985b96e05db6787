"""From READY to exit: signals, and the drain that lets live calls finish.

health NOT_SERVING and no new calls; live calls are told and may finish within the grace; the rest get the finals of
what they sent and end UNAVAILABLE with the offset to resume from. A second signal ends everything now.
"""

import asyncio
import logging
import signal
from collections.abc import Coroutine, Sequence
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2

from pipeline.scheduling.worker import Worker
from server.admission import Admission
from server.servicer import SERVICE_NAME, SpeechServicer
from server.settings import ServerSettings
from server.telemetry import Telemetry

_LAST_WORDS_S = 1.0
"""For statuses on their way when all calls have ended, and for health watchers."""
_WORKER_STOP_S = 5.0

_log = logging.getLogger(__name__)


class StopSignals:
    """SIGTERM and SIGINT as events: the first asks to drain, the second to stop at once."""

    def __init__(self) -> None:
        self.drain = asyncio.Event()
        self.now = asyncio.Event()

    def install(self) -> None:
        """Takes the signals over; needs the main thread's event loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.receive)

    def receive(self) -> None:
        """One signal."""
        if self.drain.is_set():
            self.now.set()
        self.drain.set()


class Lifecycle:
    """Owns what must be started and stopped in order."""

    def __init__(
        self,
        settings: ServerSettings,
        grpc_server: grpc.aio.Server,
        servicer: SpeechServicer,
        admission: Admission,
        workers: Sequence[Worker],
        telemetry: Telemetry,
    ) -> None:
        """Everything is made and wired, the workers run, the port is bound."""
        self.admission = admission
        self.telemetry = telemetry
        self._settings = settings
        self._grpc_server = grpc_server
        self._servicer = servicer
        self._workers = workers
        self._health = health.aio.HealthServicer()  # type: ignore[attr-defined]  # missing in the stubs

    @property
    def health(self) -> Any:
        """The servicer of grpc.health.v1."""
        return self._health

    async def start(self) -> None:
        """From here on calls are served."""
        await self._grpc_server.start()
        for service in ("", SERVICE_NAME):
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    async def drain(self, now: asyncio.Event) -> bool:
        """Lets live calls finish; returns whether all of them got their finals. `now` ends the wait."""
        grace_s = self._settings.drain_grace_s
        self.admission.refuse_new_calls()
        await self._health.enter_graceful_shutdown()
        _log.info("draining", extra={"live_calls": self.admission.num_active, "grace_s": grace_s})
        self._servicer.tell_draining(grace_s)
        if await self._idle_within(grace_s, now):
            return True
        if now.is_set():
            _log.warning("stopped at once", extra={"dropped_calls": self.admission.num_active})
            return False
        _log.warning("grace is over", extra={"cut_calls": self._servicer.cut_calls()})
        is_clean = await self._idle_within(self._settings.drain_flush_s, now)
        if not is_clean:
            _log.warning("finals are missing", extra={"dropped_calls": self.admission.num_active})
        return is_clean

    async def stop(self, grace_s: float = _LAST_WORDS_S) -> None:
        """Ends what still runs and frees everything."""
        await self._grpc_server.stop(grace_s)
        for worker in self._workers:
            await asyncio.to_thread(worker.stop, _WORKER_STOP_S)
        await asyncio.to_thread(self.telemetry.shutdown)
        _log.info("stopped")

    async def serve_until_signalled(self, signals: StopSignals) -> int:
        """Serves, drains on the first signal and stops; returns the exit code, 0 after a clean drain."""
        await signals.drain.wait()
        is_clean = await self.drain(signals.now)
        await self.stop(_LAST_WORDS_S if is_clean else 0)
        return 0 if is_clean else 1

    async def _idle_within(self, timeout_s: float, now: asyncio.Event) -> bool:
        idle = asyncio.create_task(_whatever(self.admission.wait_until_idle()))
        hurried = asyncio.create_task(_whatever(now.wait()))
        _, pending = await asyncio.wait({idle, hurried}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        return idle.done() and not idle.cancelled()


async def _whatever(waiting: Coroutine[Any, Any, object]) -> None:
    await waiting
