"""Which way of reading its bytes makes a line sound like anything at all.

Sound is predictable from its last samples, and a wrong reading of its bytes is not: a mu-law byte pair read as a 16-bit
sample, or A-law read as mu-law, is close to white noise. So every reading is measured by the gain of linear prediction
(autocorrelation method, Levinson-Durbin; Markel & Gray, Linear Prediction of Speech, 1976), and the declared one is
suspected where another one predicts far better. White noise and silence predict badly in every reading: no verdict.
"""

import numpy as np

from pipeline.audio.codecs import ByteLayout, read_as
from pipeline.types import Samples

_ORDER = 4
_HEARD_GAIN_DB = 8.0
"""Speech at 8 kHz has 8 to 20 dB, wrong readings 0 to 5."""
_MARGIN_DB = 5.0
_LEAST_RMS = 1e-3
"""-60 dBFS: below it there is little but rounding."""
_REGULARISATION = 1e-6


def prediction_gain_db(samples: Samples) -> float:
    """Energy over the energy of the prediction error; 0 for silence. Shape `(num_samples,)`."""
    centred = samples - samples.mean()
    count = len(centred)
    lags = np.array([float(centred[: count - lag] @ centred[lag:]) for lag in range(_ORDER + 1)])
    if lags[0] < count * _LEAST_RMS**2:
        return 0.0
    lags[0] *= 1 + _REGULARISATION
    coefficients = np.zeros(0)
    error = lags[0]
    for order in range(1, _ORDER + 1):
        reflection = (lags[order] - coefficients @ lags[order - 1 : 0 : -1]) / error
        coefficients = np.append(coefficients - reflection * coefficients[::-1], reflection)
        error *= 1 - reflection**2
    return float(10 * np.log10(lags[0] / max(error, _REGULARISATION * lags[0])))


def judge_encoding(data: bytes, declared: ByteLayout, num_channels: int) -> tuple[bool, ByteLayout | None]:
    """Whether a block has a verdict, and the layout that fits far better than the declared one, if any does."""
    gains = {layout: _gain_db(read_as(data, layout, num_channels)) for layout in ByteLayout}
    best = max(gains, key=gains.__getitem__)
    if gains[best] < _HEARD_GAIN_DB:
        return False, None
    return True, best if gains[best] >= gains[declared] + _MARGIN_DB else None


def _gain_db(channels: Samples) -> float:
    """Of the loudest channel: the others may be silent."""
    return prediction_gain_db(channels[int(channels.std(axis=1).argmax())])
