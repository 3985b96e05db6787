"""The ideas of Talkpath's Whisper engine, switched on one after the other.

A new idea is one entry of `IDEAS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from pipeline.engines.whisper.settings import WHOLE_WINDOW_MS, WhisperSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """Something that makes the engine quicker."""

    name: str
    off: Mapping[str, Any] = field(default_factory=dict)
    """Settings that keep it out."""
    on: Mapping[str, Any] = field(default_factory=dict)
    """Settings that bring it in."""
    with_drafts: bool = False
    """It is the one that hands each decode the hypothesis before."""
    with_batches: bool = False
    """It is the one that decodes several calls together."""
    devices: tuple[str, ...] = ("cpu", "cuda")
    """Where there is anything to it."""


DEFAULTS = {f.name: f.default for f in fields(WhisperSettings)}
IDEAS = (
    Idea(
        name="silence memory",
        off={"interim_padding_ms": WHOLE_WINDOW_MS, "final_padding_ms": WHOLE_WINDOW_MS},
        on={name: DEFAULTS[name] for name in ("interim_padding_ms", "final_padding_ms")},
    ),
    Idea(name="drafts", with_drafts=True),
    Idea(name="int8", off={"precision": "float32"}, on={"precision": "int8"}, devices=("cpu",)),
    Idea(name="float16", off={"precision": "float32"}, on={"precision": "float16"}, devices=("cuda",)),
    Idea(
        name="encoder cache",
        off={"look_ahead_ms": WHOLE_WINDOW_MS},
        on={"look_ahead_ms": DEFAULTS["look_ahead_ms"]},
    ),
    Idea(
        name="settled text",
        off={"settle_text_ms": WHOLE_WINDOW_MS},
        on={"settle_text_ms": DEFAULTS["settle_text_ms"]},
    ),
    Idea(name="batches", with_batches=True),
)
_BASE_NAME = "float32, padded window"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What all contestants have in common."""

    model: str
    num_threads: int = 1
    device: str = "cpu"
    """"cpu" or "cuda"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to build and ask the engine."""

    name: str
    settings: WhisperSettings
    with_drafts: bool
    with_batches: bool


def variants(setup: Setup, lanes: int) -> tuple[Variant, ...]:
    """Stock-like first, each of the following with one more idea, all of them in the last."""
    here = [i for i in IDEAS if setup.device in i.devices and not (i.with_batches and lanes == 1)]
    return tuple(_variant(here, num_on, setup, lanes) for num_on in range(len(here) + 1))


def _variant(ideas: Sequence[Idea], num_on: int, setup: Setup, lanes: int) -> Variant:
    on = ideas[:num_on]
    settings: dict[str, Any] = {}
    for idea in ideas:
        settings |= idea.on if idea in on else idea.off
    newest = on[-1].name if on else ""
    together = f" of {lanes}" if on and on[-1].with_batches else ""
    return Variant(
        name=f"+ {newest}{together}" if on else _BASE_NAME,
        settings=WhisperSettings(model=setup.model, num_threads=setup.num_threads, device=setup.device, **settings),
        with_drafts=any(idea.with_drafts for idea in on),
        with_batches=any(idea.with_batches for idea in on),
    )
