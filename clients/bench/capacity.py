"""More and more paced calls on a real server, until a bound of the objective breaks."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from clients.bench.figures import StepFigures, step_figures
from clients.bench.load import Load, PlayedLoad, play_load, ready, staggered_starts_s, streams_of
from clients.bench.machine import busy_cpu_s, this_machine
from clients.bench.objective import Objective, Verdict, breaches, judge
from clients.bench.recordings import CALLS_FILE, write_calls
from clients.bench.run_files import RunRecord, write_run
from clients.bench.server_process import MeasuredServer, running_server, started_server
from clients.errors import RecognitionError
from clients.recognizer import Recognizer
from clients.replay.manifest import ManifestEntry
from clients.replay.plan import CallOptions, PlannedCall, plan_calls
from clients.replay.player import CallTrace, PlayOptions
from clients.types import ServerInfo

CAPACITY_FILE = "capacity.json"
_SERVER_LOG = "server.log"
_CONNECT_TIMEOUT_S = 10.0
_SAMPLE_INTERVAL_S = 0.5
_UNPACED = 0.0
_T = TypeVar("_T")


class CapacityError(Exception):
    """The run cannot go on; its text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityOptions:
    """What is measured."""

    recordings: tuple[ManifestEntry, ...] = field(repr=False)
    counts: tuple[int, ...]
    out: Path
    calls_dir: Path | None = None
    """Holds the calls.json that the recordings come from; None writes one."""
    model: str = "tiny.en"
    overrides: tuple[str, ...] = ()
    server: str | None = None
    """HOST:PORT of one that runs; None starts one."""
    call: CallOptions = field(default_factory=CallOptions)
    chunk_ms: int = 100
    spread_s: float = 5.0
    """Calls begin within this time of each other."""
    objective: Objective = field(default_factory=Objective)
    keeps_going: bool = False
    """Also after a bound broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """So many calls at once, and in what they missed the objective."""

    figures: StepFigures
    breaches: tuple[str, ...]


class Observer:
    """Is told what goes on; does nothing about it."""

    def phase_began(self, title: str, expected_s: float) -> None:
        """The next stretch of the run, and about how long it takes (0: unknown)."""

    def step_ended(self, step: Step) -> None:
        """A step's figures are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReport:
    """The whole run."""

    steps: tuple[Step, ...]
    verdict: Verdict
    facts: dict[str, Any]
    """Machine, model, precision, settings, objective."""

    def as_json(self) -> dict[str, Any]:
        """As in `capacity.json`."""
        return {
            **self.facts,
            "verdict": asdict(self.verdict),
            "steps": [{**step.figures.as_json(), "breaches": list(step.breaches)} for step in self.steps],
        }


async def measure_capacity(options: CapacityOptions, observer: Observer) -> CapacityReport:
    """Runs all steps and writes their files.

    Raises:
        CapacityError: No server answers.
        ServerStartError: It did not start.
        PlanError: A recording cannot be played.
    """
    options.out.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        observer.phase_began("starting the server" if options.server is None else "looking for the server", 0)
        server = await _server(options, stack)
        info = await _server_info(server.address)
        options = replace(options, model=info.models[0].name)
        pool = stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
        calls = plan_calls(list(options.recordings), options.call, info.limits)
        run = _Run(options, server, pool, calls)
        steps = await run.steps(observer)
    verdict = judge([(step.figures, step.breaches) for step in steps])
    report = CapacityReport(steps=tuple(steps), verdict=verdict, facts=_facts(options, server, info))
    (options.out / CAPACITY_FILE).write_text(json.dumps(report.as_json(), indent=1), encoding="utf-8")
    return report


class _Run:
    """One server, one load process, several steps."""

    def __init__(
        self,
        options: CapacityOptions,
        server: MeasuredServer,
        pool: ProcessPoolExecutor,
        recordings: Sequence[PlannedCall],
    ) -> None:
        self._options = options
        self._server = server
        self._pool = pool
        self._recordings = recordings
        self._calls_dir = options.calls_dir or options.out

    async def steps(self, observer: Observer) -> list[Step]:
        if self._options.calls_dir is None:
            write_calls(self._options.out, self._options.recordings)
        await self._in_pool(ready)
        used = self._recordings[: max(self._options.counts)]
        observer.phase_began(f"each of {len(used)} recordings alone, unpaced, for its words and their times", 0)
        alone = {call.name: await self._alone(call) for call in used}
        steps: list[Step] = []
        for count in self._options.counts:
            calls = streams_of(self._recordings, count)
            longest_s = max(call.duration_s for call in calls)
            observer.phase_began(_calls_text(count), longest_s + self._options.spread_s)
            steps.append(await self._step(calls, alone))
            observer.step_ended(steps[-1])
            if steps[-1].breaches and not self._options.keeps_going:
                break
        return steps

    async def _step(self, calls: tuple[PlannedCall, ...], alone: dict[str, CallTrace]) -> Step:
        starts_s = staggered_starts_s(len(calls), self._options.spread_s)
        play = PlayOptions(speed=1.0, concurrency=len(calls), chunk_ms=self._options.chunk_ms)
        load = Load(address=self._server.address, calls=calls, play=play, starts_s=starts_s)
        played, usage = await self._watched(load)
        record = RunRecord(
            label=f"talkpath {self._options.model}", calls_dir=self._calls_dir, traces=played.traces, usage=usage
        )
        await asyncio.to_thread(write_run, self._options.out / f"calls_{len(calls):03d}", record)
        figures = step_figures(played.traces, alone, usage)
        return Step(figures=figures, breaches=breaches(figures, self._options.objective))

    async def _alone(self, call: PlannedCall) -> CallTrace:
        settings = replace(call.settings, word_time_offsets=True, interim_results=False)
        play = PlayOptions(speed=_UNPACED, chunk_ms=self._options.chunk_ms)
        load = Load(address=self._server.address, calls=(replace(call, settings=settings),), play=play, starts_s=(0.0,))
        trace = (await self._in_pool(play_load, load)).traces[0]
        if trace.error is not None:
            raise CapacityError(f"{call.name} fails even alone: {trace.error}")
        return trace

    async def _watched(self, load: Load) -> tuple[PlayedLoad, dict[str, float | None]]:
        """Plays a load and adds up what server, load and machine spent meanwhile."""
        server_cpu_s, busy_s, began_s = self._server.cpu_s(), busy_cpu_s(), time.monotonic()
        playing = asyncio.ensure_future(self._in_pool(play_load, load))
        highest_rss_mb = self._server.rss_mb()
        while not (await asyncio.wait([playing], timeout=_SAMPLE_INTERVAL_S))[0]:
            if (rss_mb := self._server.rss_mb()) is not None:
                highest_rss_mb = max(highest_rss_mb or 0.0, rss_mb)
        played, now_cpu_s = playing.result(), self._server.cpu_s()
        spent_s = None if now_cpu_s is None or server_cpu_s is None else now_cpu_s - server_cpu_s
        return played, {
            "wall_s": time.monotonic() - began_s,
            "server_cpu_s": spent_s,
            "client_cpu_s": played.cpu_s,
            "machine_busy_cpu_s": busy_cpu_s() - busy_s,
            "server_rss_mb": highest_rss_mb,
        }

    async def _in_pool(self, function: Callable[..., _T], *arguments: Any) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)


async def _server(options: CapacityOptions, stack: AsyncExitStack) -> MeasuredServer:
    if options.server is not None:
        return running_server(options.server)
    log = options.out / _SERVER_LOG
    return await stack.enter_async_context(started_server(options.model, options.overrides, log))


async def _server_info(address: str) -> ServerInfo:
    async with Recognizer(address) as recognizer:
        try:
            return await recognizer.server_info(timeout_s=_CONNECT_TIMEOUT_S)
        except RecognitionError as error:
            raise CapacityError(f"no server answers at {address}: {error}") from error


def _calls_text(count: int) -> str:
    return "1 call" if count == 1 else f"{count} calls at once"


def _facts(options: CapacityOptions, server: MeasuredServer, info: ServerInfo) -> dict[str, Any]:
    model = info.models[0]
    return {
        "machine": this_machine().as_json(),
        "model": model.name,
        "precision": model.precision,
        "device": model.device,
        "server_version": info.version,
        "server_settings": server.settings,
        "load": {
            "recordings": str(options.calls_dir / CALLS_FILE) if options.calls_dir else CALLS_FILE,
            "encoding": options.call.encoding.value if options.call.encoding else "as in each file",
            "rate_hz": options.call.sample_rate_hz,
            "chunk_ms": options.chunk_ms,
            "starts_within_s": options.spread_s,
        },
        "objective": asdict(options.objective),
    }
