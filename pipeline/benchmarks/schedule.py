"""Who is decoded when: interims at a fixed interval of each clip's audio, then its final, one or more clips at once."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.types import CORE_SAMPLE_RATE_HZ, Samples


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """Something said, as a session would hand it to an engine."""

    name: str
    samples: Samples = field(repr=False, compare=False)
    """16 kHz, with the pre-roll in front and the hangover behind."""
    text: str = field(repr=False)
    """The exact words."""
    tail_samples: int = 0
    """Silence at the end that the speaker's end is told by: no interim is asked for in it."""

    @property
    def duration_s(self) -> float:
        """Length of the audio."""
        return len(self.samples) / CORE_SAMPLE_RATE_HZ


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One decode: the clip's first so many samples."""

    clip: int
    """Index."""
    revision: int
    """Counts the decodes of a clip from 1."""
    num_samples: int
    is_final: bool


Round = tuple[Turn, ...]
"""Turns that are due at the same time."""


def turns_of(index: int, clip: Clip, interval_samples: int) -> list[Turn]:
    """All decodes of a clip, in order."""
    heard = range(interval_samples, len(clip.samples) - clip.tail_samples, interval_samples)
    interims = [Turn(clip=index, revision=k, num_samples=n, is_final=False) for k, n in enumerate(heard, start=1)]
    final = Turn(clip=index, revision=len(interims) + 1, num_samples=len(clip.samples), is_final=True)
    return [*interims, final]


def schedule(clips: Sequence[Clip], interims_per_s: float, lanes: int) -> list[Round]:
    """All rounds. With several lanes each plays one clip after the other, all in step, so that their turns fall due
    together; with one lane every round is one turn.
    """
    interval_samples = round(CORE_SAMPLE_RATE_HZ / interims_per_s)
    waiting = deque(turns_of(index, clip, interval_samples) for index, clip in enumerate(clips))
    playing: list[deque[Turn]] = []
    rounds: list[Round] = []
    while waiting or playing:
        while waiting and len(playing) < lanes:
            playing.append(deque(waiting.popleft()))
        rounds.append(tuple(turns.popleft() for turns in playing))
        playing = [turns for turns in playing if turns]
    return rounds
