"""Recognises that a channel only hears the other one's voice: echo of a headset, sidetone, a hybrid's echo.

Theory of operation. A leak is the other voice, later and fainter, so its band levels rise and fall with those of the
voice, frame by frame, at one delay. `find_path` looks for that delay in a stretch where the channel sounds: the
correlation of band levels about their means, which two different voices or noises do not have, however alike in level.
A path found says how loud each band of a leak is; a frame with more than that in it is the channel's own.

Rules:
1. A channel's own sound is never called a leak for its level alone: without correlation there is no path.
2. A path holds as long as the frames it explains go on to correlate; if they stop to do so, it is given up at once.
3. A frame counts as a leak only if hardly any of its energy is above the path's; double talk is the channel's own.

Sources: double-talk detection by correlation, Gänsler et al. 1996, IEEE Trans. Comm. 44(11); by level, Duttweiler 1978,
IEEE Trans. Comm. 26(5).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipeline.channels.bands import FLOOR_DB, Levels
from pipeline.types import FRAME_MS

MAX_LAG_FRAMES = 320 // FRAME_MS
ALL_LAGS = np.arange(MAX_LAG_FRAMES + 1)
_SPREAD_FRAMES = 2
"""A room lets a voice ring; frames this much before the delay count too."""
_ACTIVE_DB = -60.0
"""A frame below this, all bands together, is silence."""
_MAX_GAIN_DB = -8.0
"""A voice that comes back louder than this is no echo."""
_MARGIN_DB = 7.0
"""Band levels of a leak scatter so far about what its path says."""
_MAX_OWN_SHARE = 0.3
"""Of a leak frame's energy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoPath:
    """How one channel's voice reaches the other."""

    lag_frames: int
    gains_db: NDArray[np.float32] = field(repr=False, compare=False)
    """Of each band."""
    correlation: float


def total_db(levels: Levels) -> NDArray[np.float32]:
    """Level of all bands together, shape `(num_frames,)`."""
    return np.asarray(10 * np.log10(np.sum(10 ** (levels / 10), axis=-1)), dtype=np.float32)


def is_active(levels: Levels) -> NDArray[np.bool_]:
    """Which frames sound, shape `(num_frames,)`."""
    return np.asarray(total_db(levels) > _ACTIVE_DB)


def find_path(
    heard: Levels,
    voice: Levels,
    counted: NDArray[np.bool_],
    min_correlation: float,
    lags: NDArray[np.int_] = ALL_LAGS,
) -> EchoPath | None:
    """The path by which `heard` is explained best, or None.

    Args:
        heard: the channel that may hear the other one, `num_frames` frames.
        voice: the other channel, from MAX_LAG_FRAMES before: `num_frames + MAX_LAG_FRAMES` frames.
        counted: which frames of `heard` count.
        min_correlation: 0 to 1.
        lags: delays to try, in frames.
    """
    frames = np.flatnonzero(counted)
    if len(frames) < 2:
        return None
    chosen = heard[frames]
    deviations = chosen - chosen.mean(axis=0)
    delayed = voice[MAX_LAG_FRAMES + frames[None, :] - lags[:, None]]
    means = delayed.mean(axis=1)
    others = delayed - means[:, None, :]
    products = others.reshape(len(lags), -1) @ deviations.reshape(-1)
    energies = np.einsum("lfb,lfb->l", others, others) * np.vdot(deviations, deviations)
    correlations = products / np.sqrt(energies + 1e-6)
    best = int(np.argmax(correlations))
    correlation = float(correlations[best])
    level_db = float(np.mean(total_db(chosen) - total_db(delayed[best])))
    if correlation < min_correlation or level_db > _MAX_GAIN_DB:
        return None
    return EchoPath(lag_frames=int(lags[best]), gains_db=chosen.mean(axis=0) - means[best], correlation=correlation)


def is_explained(path: EchoPath, heard: Levels, voice: Levels) -> NDArray[np.bool_]:
    """Which frames hold hardly more than the path lets through, shape `(num_frames,)`; `voice` as in `find_path`."""
    count = len(heard)
    earliest = max(0, MAX_LAG_FRAMES - path.lag_frames - _SPREAD_FRAMES)
    latest = min(MAX_LAG_FRAMES, MAX_LAG_FRAMES - path.lag_frames + 1)
    loudest = voice[earliest : earliest + count]
    for start in range(earliest + 1, latest + 1):
        loudest = np.maximum(loudest, voice[start : start + count])
    expected = np.maximum(loudest + path.gains_db, FLOOR_DB) + _MARGIN_DB
    power = 10 ** (heard / 10)
    own = np.where(heard > expected, power, 0.0).sum(axis=1)
    return np.asarray(own <= _MAX_OWN_SHARE * power.sum(axis=1))
