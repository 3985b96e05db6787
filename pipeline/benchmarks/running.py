"""Takes a transcriber through a schedule and measures what it costs: CPU seconds of the process, and wall time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pipeline.benchmarks.schedule import Clip, Round, Turn
from pipeline.types import CORE_SAMPLE_RATE_HZ, Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """A turn with its audio."""

    turn: Turn
    audio: Samples = field(repr=False, compare=False)


class Transcriber(Protocol):
    """Something that turns audio into words."""

    @property
    def name(self) -> str:
        """As in tables."""
        ...

    def warm_up(self) -> None:
        """Everything that is slow only once."""
        ...

    def transcribe(self, hearings: Sequence[Hearing]) -> list[str]:
        """One text a hearing, in order."""
        ...

    def close(self) -> None:
        """Frees the model."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a stretch of work took."""

    cpu_s: float
    """All threads of the process."""
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a transcriber said to a schedule, and at what cost."""

    name: str
    cost: Cost
    texts: dict[Turn, str] = field(repr=False)
    """What was said to each turn, in order."""

    @property
    def finals(self) -> dict[int, str]:
        """By clip."""
        return {turn.clip: text for turn, text in self.texts.items() if turn.is_final}

    @property
    def last_interims(self) -> dict[int, str]:
        """By clip; clips without interims are left out."""
        return {turn.clip: text for turn, text in self.texts.items() if not turn.is_final}


def run(
    transcriber: Transcriber, clips: Sequence[Clip], rounds: Sequence[Round], advance: Callable[[int], None]
) -> Outcome:
    """Runs a whole schedule; `advance` is told how many turns were done. Warm up before."""
    texts: dict[Turn, str] = {}
    cpu_s = wall_s = 0.0
    for turns in rounds:
        hearings = [Hearing(turn=turn, audio=clips[turn.clip].samples[: turn.num_samples]) for turn in turns]
        began_cpu_s, began_s = time.process_time(), time.perf_counter()
        heard = transcriber.transcribe(hearings)
        cpu_s += time.process_time() - began_cpu_s
        wall_s += time.perf_counter() - began_s
        texts.update(zip(turns, heard, strict=True))
        advance(len(turns))
    return Outcome(name=transcriber.name, cost=Cost(cpu_s=cpu_s, wall_s=wall_s), texts=texts)


def audio_s(clips: Sequence[Clip]) -> float:
    """Length of all clips together."""
    return sum(len(clip.samples) for clip in clips) / CORE_SAMPLE_RATE_HZ
