"""The same words on every path: batched or serial, after interims or from scratch, in every precision."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipeline.benchmarks.running import Outcome, run
from pipeline.benchmarks.schedule import Clip, schedule, turns_of
from pipeline.benchmarks.talkpath import TalkpathTranscriber, open_engine
from pipeline.benchmarks.variants import Setup
from pipeline.engines.base import Engine
from pipeline.types import CORE_SAMPLE_RATE_HZ

_SERIAL = 1

Advance = Callable[[int], None]
"""Is told how many decodes were done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """What one engine says on each path."""

    precision: str
    """The one in force."""
    offline: Outcome = field(repr=False)
    """Finals from scratch: no interim before, no draft."""
    serial: Outcome = field(repr=False)
    """Interims and finals, one at a time."""
    batched: Outcome = field(repr=False)
    """The same, several at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far two paths say the same."""

    num_equal: int
    num_texts: int
    differing: tuple[tuple[str, str, str], ...] = field(repr=False)
    """Which clip, and both texts."""

    @property
    def is_complete(self) -> bool:
        """Whether every text is the same, to the letter."""
        return self.num_equal == self.num_texts

    @property
    def share(self) -> float:
        """Texts that are the same."""
        return self.num_equal / max(1, self.num_texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParityPlan:
    """What is run."""

    clips: Sequence[Clip] = field(repr=False)
    interims_per_s: float
    lanes: int
    """Clips at once on the batched path."""
    setup: Setup

    @property
    def num_decodes(self) -> int:
        """Of all paths of one engine."""
        interval_samples = round(CORE_SAMPLE_RATE_HZ / self.interims_per_s)
        num_turns = sum(len(turns_of(i, clip, interval_samples)) for i, clip in enumerate(self.clips))
        return 2 * num_turns + len(self.clips)


def run_paths(plan: ParityPlan, precision: str, advance: Advance) -> Paths:
    """Takes one engine down every path.

    Raises:
        InvalidConfigError: There is no such precision.
        EngineError: The device does not have it.
    """
    engine = open_engine(plan.setup, precision)
    try:
        incremental = TalkpathTranscriber("incremental", engine)
        return Paths(
            precision=engine.info.precision,
            offline=_offline(plan, engine, advance),
            serial=run(incremental, plan.clips, schedule(plan.clips, plan.interims_per_s, _SERIAL), advance),
            batched=run(incremental, plan.clips, schedule(plan.clips, plan.interims_per_s, plan.lanes), advance),
        )
    finally:
        engine.close()


def _offline(plan: ParityPlan, engine: Engine, advance: Advance) -> Outcome:
    finals = [(turns_of(index, clip, len(clip.samples))[-1],) for index, clip in enumerate(plan.clips)]
    return run(TalkpathTranscriber("offline", engine, with_drafts=False), plan.clips, finals, advance)


def batched_against_serial(clips: Sequence[Clip], paths: Paths) -> Agreement:
    """All interims and finals."""
    pairs = {
        f"{clips[turn.clip].name}, decode {turn.revision}": (text, paths.batched.texts[turn])
        for turn, text in paths.serial.texts.items()
    }
    return _agreement(pairs)


def finals_agreement(clips: Sequence[Clip], expected: Outcome, found: Outcome) -> Agreement:
    """Finals of two outcomes."""
    finals = found.finals
    return _agreement({clips[clip].name: (text, finals[clip]) for clip, text in expected.finals.items()})


def _agreement(pairs: dict[str, tuple[str, str]]) -> Agreement:
    differing = tuple((name, *texts) for name, texts in pairs.items() if texts[0] != texts[1])
    return Agreement(num_equal=len(pairs) - len(differing), num_texts=len(pairs), differing=differing)
