"""Everyone who is given the same schedule, peers first."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.benchmarks.running import Transcriber
from pipeline.benchmarks.talkpath import TalkpathTranscriber, load_engine
from pipeline.benchmarks.variants import Setup, Variant, variants


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One row of the comparison; its model is loaded when it is opened."""

    name: str
    open: Callable[[], Transcriber]
    with_batches: bool = False
    """Is given all turns that fall due together."""


def contestants(setup: Setup, lanes: int, scratch: Path) -> list[Contestant]:
    """Stock transformers, faster-whisper and Talkpath's variants; `scratch` is for files that peers need."""
    from pipeline.benchmarks.peers import FasterWhisper, StockTransformers  # brings torch

    peers = [
        Contestant(name=StockTransformers.name, open=partial(StockTransformers, setup)),
        Contestant(name=FasterWhisper.name_on(setup.device), open=partial(FasterWhisper, setup, scratch)),
    ]
    own = [
        Contestant(name=variant.name, open=partial(_open, variant), with_batches=variant.with_batches)
        for variant in variants(setup, lanes)
    ]
    return peers + own


def _open(variant: Variant) -> Transcriber:
    return TalkpathTranscriber(variant.name, load_engine(variant.settings), with_drafts=variant.with_drafts)
