"""The server's end: an engine that runs elsewhere looks like any other, and comes back when its process dies."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any

from pipeline.engines.base import EngineInfo
from pipeline.engines.hosting.messages import EngineFactory, Failure, Load, Ready, Release, Transcribe
from pipeline.errors import EngineError
from pipeline.types import Batch, DecodeResult

_BATCH_TIMEOUT_S = 100.0
"""A batch that takes longer than this hangs: below what a call waits for its answer (`server.decode_timeout_s`)."""
_EXIT_TIMEOUT_S = 10.0
_PROGRAM = "import sys; sys.path = sys.argv[2:]; from pipeline.engines.hosting.host import main; main(int(sys.argv[1]))"
"""Finds modules where this process finds them."""

_log = logging.getLogger(__name__)


class EngineHost:
    """A process that holds one engine and opens lanes to it. Safe to use from several threads."""

    def __init__(self, factory: EngineFactory) -> None:
        """Loads the engine.

        Raises:
            TalkpathError: It cannot be loaded.
        """
        self._load = Load(factory=factory)
        self._lock = threading.Lock()
        self._num_lanes = 0
        self._start()

    @property
    def info(self) -> EngineInfo:
        """What the engine is."""
        return self._info

    def lanes(self) -> Sequence["HostedEngine"]:
        """As many as the engine is worth."""
        return [HostedEngine(self) for _ in range(self._info.num_lanes)]

    def open_lane(self) -> Connection:
        """A connection to a lane of its own, which answers Ready when it is warm; a dead host is started again first.

        Raises:
            TalkpathError: It cannot be.
        """
        with self._lock:
            try:
                return self._fork_lane()
            except OSError:
                _log.warning("an engine's host has ended; the model is loaded again", extra={"model": self._info.model})
                self._stop()
                self._start()
                return self._fork_lane()

    def retain(self) -> None:
        """A lane is in use."""
        with self._lock:
            self._num_lanes += 1

    def release(self) -> None:
        """A lane is not used any more; the last one ends the process."""
        with self._lock:
            self._num_lanes -= 1
            if self._num_lanes == 0:
                self._stop()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, str(theirs.fileno()), *(path or os.getcwd() for path in sys.path)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._control = ours
        control = Connection(os.dup(ours.fileno()))
        try:
            with control:
                control.send(self._load)
                answer: EngineInfo | Failure = control.recv()
        except (EOFError, OSError):
            self._stop()
            raise EngineError("an engine's process ended while its model was loaded; see its messages above") from None
        if isinstance(answer, Failure):
            self._stop()
            raise answer.error
        self._info = answer

    def _fork_lane(self) -> Connection:
        ours, theirs = Pipe()
        try:
            socket.send_fds(self._control, [b"\0"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return ours

    def _stop(self) -> None:
        self._control.close()
        try:
            self._process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class HostedEngine:
    """One lane of a host; implements `pipeline.engines.base.Engine`. One thread at a time."""

    def __init__(self, host: EngineHost) -> None:
        self._host = host
        host.retain()
        self._lane: Connection | None = None
        self._pid: int | None = None
        self._is_closed = False

    @property
    def info(self) -> EngineInfo:
        """See Engine."""
        return self._host.info

    def warm_up(self) -> None:
        """Opens the lane.

        Raises:
            TalkpathError: The engine cannot decode, or its process has ended.
        """
        if self._is_closed:
            raise EngineError("the engine is closed")
        self._lane, self._pid = self._host.open_lane(), None
        answer = self._exchange()
        if isinstance(answer, Failure):
            raise answer.error
        assert isinstance(answer, Ready)
        self._pid = answer.pid

    def transcribe(self, batch: Batch) -> list[DecodeResult]:
        """See Engine. A process that has ended or hangs is replaced; what it was asked fails."""
        if self._lane is None:
            self.warm_up()
        answer = self._exchange(Transcribe(batch=batch))
        if isinstance(answer, Failure):
            raise answer.error
        results: list[DecodeResult] = answer
        return results

    def release(self, segment_keys: Collection[tuple[str, str]]) -> None:
        """See Engine."""
        # A process that has ended holds nothing; the next batch will find that out.
        with suppress(OSError):
            if self._lane is not None:
                self._lane.send(Release.of(segment_keys))

    def close(self) -> None:
        """See Engine."""
        if not self._is_closed:
            self._is_closed = True
            self._drop_lane()
            self._host.release()

    def _exchange(self, message: Transcribe | None = None) -> Any:
        lane = self._lane
        assert lane is not None
        try:
            if message is not None:
                lane.send(message)
            if not lane.poll(_BATCH_TIMEOUT_S):
                raise TimeoutError
            return lane.recv()
        except TimeoutError:
            self._drop_lane()
            raise EngineError(f"the engine's process gave no answer for {_BATCH_TIMEOUT_S:g} s and was ended") from None
        except (EOFError, OSError):
            self._drop_lane()
            raise EngineError("the engine's process has ended; another one takes its place") from None

    def _drop_lane(self) -> None:
        if self._pid is not None:
            # One that works or hangs would not notice that its connection ends; the host reaps it.
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
        if self._lane is not None:
            self._lane.close()
        self._lane = self._pid = None
