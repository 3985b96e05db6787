"""Stateful resampling of one channel, 10 ms frame by 10 ms frame.

A windowed-sinc low-pass (Kaiser window; Oppenheim & Schafer, Discrete-Time Signal Processing, 7.5) is laid out as
one matrix that maps the newest frame and the filter's history to the output frame. One matrix-vector product a
frame makes the output independent of how the audio arrived. A streaming soxr would add 64 ms of delay at 8 to 16 kHz;
this filter adds half its length.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipeline.types import FRAME_MS, Samples

_MS_PER_S = 1000
_KAISER_BETA = 7.0
"""About 70 dB of stop-band attenuation."""
_ATTENUATION_DB = 70.0


def delay_ms(from_hz: int, to_hz: int) -> int:
    """Delay that `Resampler` adds: half its filter. Longer where the narrow band is the telephone's."""
    if from_hz == to_hz:
        return 0
    return 4 if min(from_hz, to_hz) <= 8_000 else 2


@lru_cache(maxsize=32)
def _frame_matrix(from_hz: int, to_hz: int) -> NDArray[np.float32]:
    """Shape `(out_samples, history_samples + in_samples)`."""
    in_samples = from_hz * FRAME_MS // _MS_PER_S
    out_samples = to_hz * FRAME_MS // _MS_PER_S
    half_width_s = delay_ms(from_hz, to_hz) / _MS_PER_S
    history_samples = int(np.ceil(2 * half_width_s * from_hz))
    # Kaiser's formula: the transition band that a filter of this length affords, laid just below Nyquist.
    transition_hz = (_ATTENUATION_DB - 8) / (2.285 * 2 * np.pi * 2 * half_width_s)
    cutoff_hz = min(from_hz, to_hz) / 2 - transition_hz / 2
    out_s = np.arange(out_samples)[:, None] / to_hz - half_width_s
    in_s = np.arange(-history_samples, in_samples)[None, :] / from_hz
    distance_s = out_s - in_s
    inside = np.abs(distance_s) <= half_width_s
    position = np.where(inside, distance_s / half_width_s, 0.0)
    window = np.i0(_KAISER_BETA * np.sqrt(1 - position**2)) / np.i0(_KAISER_BETA)
    kernel = np.where(inside, np.sinc(2 * cutoff_hz * distance_s) * window, 0.0)
    kernel /= kernel.sum(axis=1, keepdims=True)  # every output phase passes DC unchanged
    matrix = np.ascontiguousarray(kernel, dtype=np.float32)
    matrix.setflags(write=False)
    return matrix


class Resampler:
    """Converts one channel from one rate to another."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        """Both rates must hold a whole number of samples in 10 ms."""
        self.delay_ms = delay_ms(from_hz, to_hz)
        self._passes_through = from_hz == to_hz
        if self._passes_through:
            return
        self._matrix = _frame_matrix(from_hz, to_hz)
        self._in_samples = from_hz * FRAME_MS // _MS_PER_S
        self._window = np.zeros(self._matrix.shape[1], dtype=np.float32)

    def process(self, frame: Samples) -> Samples:
        """Takes the next 10 ms at the source rate, shape `(in_samples,)`; returns 10 ms at the target rate."""
        if self._passes_through:
            return frame
        self._window[: -self._in_samples] = self._window[self._in_samples :]
        self._window[-self._in_samples :] = frame
        return self._matrix @ self._window

    def reset(self) -> None:
        """Forgets the history, as after missing audio."""
        if not self._passes_through:
            self._window[:] = 0
