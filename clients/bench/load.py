"""Plays many calls at once from a process of its own, so that the load never waits for whoever measures it."""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clients.recognizer import Recognizer
from clients.replay.plan import PlannedCall
from clients.replay.player import CallTrace, PlayOptions, TimedEvent, play_call

CALLS_PER_CONNECTION = 10
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Calls to be played at once."""

    address: str
    calls: tuple[PlannedCall, ...]
    play: PlayOptions
    starts_s: tuple[float, ...]
    """When each begins, in seconds from now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedLoad:
    """What came of it."""

    traces: tuple[CallTrace, ...] = field(repr=False)
    wall_s: float
    cpu_s: float
    """Of the load's own process, all threads."""


class _Unobserved:
    """Nobody looks while the load runs."""

    def call_began(self, call: PlannedCall) -> None: ...
    def audio_sent(self, call: PlannedCall, sent_ms: float) -> None: ...
    def event_received(self, call: PlannedCall, event: TimedEvent) -> None: ...
    def call_ended(self, trace: CallTrace) -> None: ...


def streams_of(recordings: Sequence[PlannedCall], count: int) -> tuple[PlannedCall, ...]:
    """So many streams: the recordings in turn, numbered from 0."""
    return tuple(replace(recordings[number % len(recordings)], index=number) for number in range(count))


def staggered_starts_s(count: int, spread_s: float) -> tuple[float, ...]:
    """Starts that never fall into step with each other, however many there are; the first is 0."""
    return tuple(spread_s * ((number * _GOLDEN_RATIO) % 1.0) for number in range(count))


def play_load(load: Load) -> PlayedLoad:
    """Plays all calls of the load to their ends."""
    began_s, began_cpu_s = time.monotonic(), time.process_time()
    traces = asyncio.run(_play(load))
    return PlayedLoad(traces=traces, wall_s=time.monotonic() - began_s, cpu_s=time.process_time() - began_cpu_s)


async def _play(load: Load) -> tuple[CallTrace, ...]:
    num_connections = math.ceil(len(load.calls) / CALLS_PER_CONNECTION)
    async with Recognizer(load.address, num_connections=num_connections) as recognizer:

        async def play_later(call: PlannedCall, start_s: float) -> CallTrace:
            await asyncio.sleep(start_s)
            return await play_call(recognizer, call, load.play, _Unobserved())

        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(play_later(call, start_s))
                for call, start_s in zip(load.calls, load.starts_s, strict=True)
            ]
        return tuple(task.result() for task in tasks)


def ready() -> None:
    """Does nothing; whoever waits for it knows that the load's process has started."""
