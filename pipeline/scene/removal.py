"""Takes tones out of audio that somebody also speaks in, so that a recogniser hears the voice alone.

Each 10 ms are split into what sines and cosines of the tones' frequencies can explain (least squares) and the rest,
which is kept. A voice loses four dimensions of 160, a key 20 to 30 dB.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.types import CORE_SAMPLE_RATE_HZ, FRAME_SAMPLES, Samples


def remove_tones(frame: Samples, frequencies_hz: tuple[float, ...]) -> Samples:
    """Returns 10 ms at 16 kHz, shape `(160,)`, without these tones."""
    waves, weights = _projection(frequencies_hz)
    return frame - waves @ (weights @ frame)


@lru_cache(maxsize=64)
def _projection(frequencies_hz: tuple[float, ...]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Shapes `(160, 2 x tones)` and `(2 x tones, 160)`."""
    time_s = np.arange(FRAME_SAMPLES) / CORE_SAMPLE_RATE_HZ
    turns = 2 * np.pi * time_s[:, None] * np.array(frequencies_hz)
    waves = np.concatenate((np.cos(turns), np.sin(turns)), axis=1)
    return waves.astype(np.float32), np.linalg.pinv(waves, rcond=1e-3).astype(np.float32)
