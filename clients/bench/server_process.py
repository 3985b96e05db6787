"""The server that is measured: started for the run, or found by its port; its CPU time and memory."""

import asyncio
import sys
import tomllib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

_ANNOUNCEMENT = "talkpath-server listening on "
_START_TIMEOUT_S = 300.0
_STOP_TIMEOUT_S = 60.0
_MIB = 1024**2
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_COMMAND = (sys.executable, "-c", "from server.cli import main; main()")
"""`talkpath-server` of this environment, whether its folder is on the PATH or not."""


class ServerStartError(Exception):
    """The server did not start; its text is what the server said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredServer:
    """A server and its process, where that runs on this machine."""

    address: str
    process: psutil.Process | None = field(default=None, compare=False)
    settings: dict[str, Any] = field(default_factory=dict)
    """In force, as far as they are known."""

    def cpu_s(self) -> float | None:
        """CPU seconds so far, those of its engines' processes too."""
        if self.process is None:
            return None
        times = [process.cpu_times() for process in self._family()]
        return float(sum(t.user + t.system for t in times))

    def rss_mb(self) -> float | None:
        """Resident memory in MiB; what processes share counts once where the system can tell."""
        if self.process is None:
            return None
        return round(sum(_own_bytes(process) for process in self._family()) / _MIB, 1)

    def _family(self) -> list[psutil.Process]:
        return [] if self.process is None else [self.process, *self.process.children(recursive=True)]


def _own_bytes(process: psutil.Process) -> int:
    try:
        # Its share of what it shares: the sum over all processes is what they take together.
        return int(process.memory_full_info().pss)
    except (AttributeError, psutil.AccessDenied):
        return int(process.memory_info().rss)


@asynccontextmanager
async def started_server(model: str, overrides: Sequence[str], log: Path) -> AsyncIterator[MeasuredServer]:
    """Runs `talkpath-server` on a free port of this machine for as long as the block lasts.

    Args:
        model: Its model.
        overrides: `section.key=value`, as for its `--set`.
        log: Where its messages go.

    Raises:
        ServerStartError: It did not start.
    """
    options = ["--listen", "127.0.0.1:0", "--model", model, *(o for s in overrides for o in ("--set", s))]
    settings = await _settings_in_force(options)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as messages:
        process = await asyncio.create_subprocess_exec(
            *_COMMAND, *options, stdout=asyncio.subprocess.PIPE, stderr=messages
        )
        try:
            address = await _announced_address(process, log)
            yield MeasuredServer(address=address, process=psutil.Process(process.pid), settings=settings)
        finally:
            await _stop(process)


def running_server(address: str) -> MeasuredServer:
    """A server that runs already; its process is found when it listens on this machine and may be looked at."""
    host, _, port = address.rpartition(":")
    if host.strip("[]") not in _LOOPBACK:
        return MeasuredServer(address=address)
    try:
        listening = [c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN and c.pid]
    except psutil.AccessDenied:
        return MeasuredServer(address=address)
    pid = next((c.pid for c in listening if c.laddr.port == int(port)), None)
    return MeasuredServer(address=address, process=psutil.Process(pid) if pid else None)


async def _settings_in_force(options: Sequence[str]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *_COMMAND, *options, "--print-config", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, complaint = await process.communicate()
    if process.returncode:
        raise ServerStartError(complaint.decode().strip())
    return tomllib.loads(output.decode())


async def _announced_address(process: asyncio.subprocess.Process, log: Path) -> str:
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_TIMEOUT_S)
    except TimeoutError:
        raise ServerStartError(f"the server was not ready after {_START_TIMEOUT_S:.0f} s; see {log}") from None
    text = line.decode().strip()
    if not text.startswith(_ANNOUNCEMENT):
        raise ServerStartError(f"the server did not start: {_last_line(log)}")
    return text.removeprefix(_ANNOUNCEMENT)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
