"""What the server and an engine's processes say to each other, pickled, over socket pairs that nobody else can open."""

import traceback
from collections.abc import Callable, Collection
from dataclasses import dataclass

from pipeline.engines.base import Engine
from pipeline.errors import EngineError, TalkpathError
from pipeline.types import Batch

EngineFactory = Callable[[], Engine]
"""Loads an engine; can be pickled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """To a host, first: the engine it is for."""

    factory: EngineFactory


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """From a lane: its engine is warm."""

    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcribe:
    """To a lane; answered by a list of results or a Failure."""

    batch: Batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """To a lane; not answered."""

    segment_keys: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, segment_keys: Collection[tuple[str, str]]) -> "Release":
        """Of any collection."""
        return cls(segment_keys=tuple(segment_keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What went wrong in the other process."""

    error: TalkpathError

    @classmethod
    def of(cls, error: Exception) -> "Failure":
        """Our own errors travel as they are, others as an EngineError; both with where they happened."""
        ours = error if isinstance(error, TalkpathError) else EngineError(f"{type(error).__name__} in the engine")
        ours.add_note("in the engine's process:\n" + "".join(traceback.format_exception(error)))
        return cls(error=ours)
