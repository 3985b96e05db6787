"""Variation: the same script as another call, with other words, voices, tempo, gaps and levels."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from sample_calls.dialogue import CallScript, Sound, Turn, load_script

SHIFT_RANGE = (1.12, 1.24)
SPEED_RANGE = (0.9, 1.1)
GAP_RANGE = (0.7, 1.5)
OVERLAP_RANGE = (0.5, 1.0)
"""An overlap only shrinks: a longer one would reach into the speaker's own last words."""
LEVEL_SPREAD_DB = 4.0
AS_WRITTEN_SEED = 0
"""The seed that changes nothing; the committed calls are made with it."""


def load_variant(path: Path, seed: int) -> CallScript:
    """Reads a script and varies it.

    Args:
        path: The script.
        seed: `AS_WRITTEN_SEED` keeps it as written; any other number gives one variant, always the same.
    """
    if seed == AS_WRITTEN_SEED:
        return load_script(path)
    rng = np.random.default_rng(seed)
    script = load_script(path, rng)
    agent_db, customer_db = rng.uniform(-LEVEL_SPREAD_DB, LEVEL_SPREAD_DB, 2)
    levels_db = {"agent": agent_db, "customer": customer_db}
    return replace(
        script,
        name=f"{script.name}-{seed:04d}",
        customer_shift=float(rng.uniform(*SHIFT_RANGE)),
        speed=script.speed * float(rng.uniform(*SPEED_RANGE)),
        steps=tuple(_vary(step, levels_db, rng) for step in script.steps),
    )


def _vary(step: Turn | Sound, levels_db: dict[str, float], rng: np.random.Generator) -> Turn | Sound:
    factor = float(rng.uniform(*(OVERLAP_RANGE if step.gap_ms < 0 else GAP_RANGE)))
    if isinstance(step, Sound):
        return replace(step, gap_ms=round(step.gap_ms * factor), duration_ms=round(step.duration_ms * factor))
    return replace(step, gap_ms=round(step.gap_ms * factor), level_db=step.level_db + levels_db[step.speaker])
