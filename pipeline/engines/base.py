"""What every engine offers. Engines are synchronous, may be called from several threads, and know no session."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from pipeline.types import Batch, DecodeResult


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineInfo:
    """What an engine is and can do."""

    model: str
    """Public name, as in RecognitionConfig.model."""
    language_codes: tuple[str, ...]
    """ISO 639-1 codes it can be asked for, the default one first."""
    precision: str
    device: str
    max_audio_ms: int
    """Longest audio of one request."""
    can_translate: bool = False
    can_detect_language: bool = False
    max_alternatives: int = 1
    num_lanes: int = 1
    """Batches that it is worth to run at the same time."""


class Engine(Protocol):
    """Turns batches of decode requests into hypotheses.

    Starts no thread before `warm_up`, so that a process with a loaded engine can be forked.
    """

    @property
    def info(self) -> EngineInfo:
        """What this engine is; constant after construction."""
        ...

    def warm_up(self) -> None:
        """Runs the shapes that calls will need, so that the first call is as quick as the next."""
        ...

    def transcribe(self, batch: Batch) -> list[DecodeResult]:
        """Decodes a batch: one result a request, same order.

        A request that fails alone becomes a result with `error`. An exception fails the whole batch; the
        worker then tries each request alone once.
        """
        ...

    def release(self, segment_keys: Collection[tuple[str, str]]) -> None:
        """Forgets what is cached for these segments (`DecodeRequest.segment_key`); unknown ones are ignored."""
        ...

    def close(self) -> None:
        """Frees the model. No call may follow."""
        ...
