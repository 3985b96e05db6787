"""Tells whether a window is one or two steady tones, without looking at frequencies.

A sum of two sinusoids that do not change obeys x[n-2] + x[n+2] = a (x[n-1] + x[n+1]) + b x[n] for some a and b, at
any spacing of the samples (the symmetric case of Prony's method; Kay, Modern Spectral Estimation, 11.5). What a and b,
fitted by least squares, leave unexplained is nearly nothing for tones. A voice changes its pitch and has more than two
harmonics: with samples some 5 ms apart, its windows hardly ever fit, except where that is its period (or half of it).
So two spacings are tried, of which no pitch fits both. This costs a tenth of a spectrum.
"""

from collections.abc import Sequence

import numpy as np

from pipeline.types import Samples

_REGULARIZATION = 1e-5


class TonePredictor:
    """Fits windows of one length."""

    def __init__(self, window_samples: int, spacings_samples: Sequence[int]) -> None:
        """The equation is fitted to samples that far apart; its five span four times that."""
        self._fits = [_Fit(window_samples, spacing) for spacing in spacings_samples]

    def explains(self, window: Samples, max_unexplained: float) -> bool:
        """Whether no more than this share of a window's energy, 0 to 1, is something else than two steady tones.

        Args:
            window: shape `(window_samples,)`.
            max_unexplained: noise counts, at about one and a half times its share.
        """
        return all(fit.unexplained(window) <= max_unexplained for fit in self._fits)


class _Fit:
    """The fit at one spacing; has room for its terms, so that nothing is allocated."""

    def __init__(self, window_samples: int, spacing_samples: int) -> None:
        self._spacing = spacing_samples
        self._fitted = window_samples - 4 * spacing_samples
        self._terms = np.empty((3, self._fitted), dtype=np.float32)

    def unexplained(self, window: Samples) -> float:
        """Share of the energy that is left."""
        outer, inner, middle = self._terms
        spacing, fitted = self._spacing, self._fitted
        np.add(window[4 * spacing :], window[:fitted], out=outer)
        np.add(window[3 * spacing : -spacing], window[spacing : spacing + fitted], out=inner)
        middle[:] = window[2 * spacing : -2 * spacing]
        (oo, oi, om), (_, ii, im), (_, _, mm) = (self._terms @ self._terms.T).tolist()
        floor = _REGULARIZATION * (ii + mm)
        ii, mm_ = ii + floor, mm + floor
        determinant = ii * mm_ - im * im
        if determinant <= 0:  # silence
            return 1.0
        a = (oi * mm_ - om * im) / determinant
        b = (om * ii - oi * im) / determinant
        return float(max(0.0, oo - a * oi - b * om) / (oo + mm))
