"""Keys pressed on a telephone, heard in its audio (ITU-T Q.23; what receivers must accept and reject: Q.24).

Theory of operation. Every 10 ms, the last 20 ms are correlated with the eight frequencies and with guard frequencies
between and beside them. A digit stands out where one of the four low frequencies is the loudest of the low group and
one of the four high ones the loudest of the high group. That begins a press; it lasts while the digit stands out, or
both tones go on as predicted from the window before, and it also takes in the windows before from which it is
predicted. When it ends, `presses` judges it as a whole: no digit is told while it may yet be speech.
"""

from collections import deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pipeline.scene.listening import BLOCK_MS, BLOCK_SAMPLES, Block
from pipeline.scene.presses import HIGH_HZ, LOW_HZ, HopTones, KeyPress, is_clear, judge
from pipeline.types import CORE_SAMPLE_RATE_HZ, FRAME_MS, FRAME_SAMPLES

_LOW_GUARDS_HZ = (620, 660, 733, 811, 896, 985, 1040)
_HIGH_GUARDS_HZ = (1110, 1160, 1272, 1406, 1555, 1695, 1760)
_PROBES_HZ = np.array((*LOW_HZ, *_LOW_GUARDS_HZ, *HIGH_HZ, *_HIGH_GUARDS_HZ), dtype=np.float64)
_NUM_PROBES = len(_PROBES_HZ)
_HIGH_PROBE = len(LOW_HZ) + len(_LOW_GUARDS_HZ)
"""Index of the first high probe."""
_WINDOW_SAMPLES = 2 * FRAME_SAMPLES

_MIN_POWER = 1e-5
"""Both tones together, -50 dBFS: Q.24 asks for 8 dB more at the least."""
_MIN_SHARE = 0.06
_MAX_TWIST, _MIN_TWIST = 10 ** (9 / 10), 10 ** (-11 / 10)
"""High to low tone by power. Q.24: +4 and -8 dB must be accepted; some more, since voices and noise add to either."""
_LOOK_BACK_HOPS = 4
_MAX_SURPRISE = 0.5
"""A tone that goes on is in the next window not further than this share from where it is expected."""
_PATIENCE_HOPS = 2
"""So many windows without the digit end a press: a gap of 10 ms does not, one of 40 ms does."""


def _probe_matrix() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Shapes `(window, 2 x probes)` and `(window,)`: windowed probes that give amplitudes, and weights of energy."""
    window = np.hanning(_WINDOW_SAMPLES + 1)[:-1]
    time_s = (np.arange(_WINDOW_SAMPLES) - _WINDOW_SAMPLES / 2) / CORE_SAMPLE_RATE_HZ
    waves = window[:, None] * np.exp(-2j * np.pi * time_s[:, None] * _PROBES_HZ) * (2 / window.sum())
    probes = np.concatenate((waves.real, waves.imag), axis=1).astype(np.float32)
    return np.ascontiguousarray(probes), (window / window.sum()).astype(np.float32)


_PROBES, _WEIGHTS = _probe_matrix()
_TURNS = {hz: complex(np.exp(2j * np.pi * hz * FRAME_MS / 1000)) for hz in (*LOW_HZ, *HIGH_HZ)}
"""How far a tone turns from one window to the next."""

_Digit = tuple[int, int]
"""A low and a high frequency, by index."""


class _Hop:
    """One window of 20 ms."""

    __slots__ = ("_parts", "centre_ms", "digit", "power")

    def __init__(self, centre_ms: int, parts: NDArray[np.float32] | None, power: float, digit: _Digit | None) -> None:
        """`parts` are the probes' real, then imaginary parts, None in silence; `digit` is what stands out."""
        self.centre_ms = centre_ms
        self.power = power
        self.digit = digit
        self._parts = parts

    def tones(self, digit: _Digit) -> HopTones:
        """What it holds of a digit."""
        if (parts := self._parts) is None:
            return HopTones(self.centre_ms, 0j, 0j, 0.0)
        low, high = digit[0], _HIGH_PROBE + digit[1]
        return HopTones(
            self.centre_ms,
            complex(parts[low], parts[_NUM_PROBES + low]),
            complex(parts[high], parts[_NUM_PROBES + high]),
            self.power,
        )


class _Press:
    """The windows of what may be a key."""

    def __init__(self, digit: _Digit, before: Iterable[_Hop], first: _Hop) -> None:
        """`before` are the windows before the first in which the digit stood out, newest first."""
        self.digit = digit
        self.hops = [first.tones(digit)]
        self._turns = (_TURNS[LOW_HZ[digit[0]]], _TURNS[HIGH_HZ[digit[1]]])
        self._missed = 0
        for hop in before:
            tones = hop.tones(digit)
            if not self._follows(tones, self.hops[0]):
                break
            self.hops.insert(0, tones)

    def goes_on(self, hop: _Hop) -> bool:
        """Takes the next window; returns False if the press has ended before it."""
        tones = hop.tones(self.digit)
        if hop.digit == self.digit or (self._missed == 0 and self._follows(self.hops[-1], tones)):
            self._missed = 0
            self.hops.append(tones)
            return True
        self._missed += 1
        return hop.digit is None and self._missed < _PATIENCE_HOPS

    def _follows(self, earlier: HopTones, later: HopTones) -> bool:
        """Whether both tones are in the later of two neighbours what the earlier lets expect."""
        low, high = earlier.low * self._turns[0], earlier.high * self._turns[1]
        is_low = abs(later.low - low) < _MAX_SURPRISE * abs(low)
        return is_low and abs(later.high - high) < _MAX_SURPRISE * abs(high)


class DtmfDetector:
    """One channel's keys."""

    def __init__(self) -> None:
        self._press: _Press | None = None
        self._recent: deque[_Hop] = deque(maxlen=_LOOK_BACK_HOPS)
        """Newest first."""

    @property
    def is_clear_key(self) -> bool:
        """Whether a key is on right now that nobody talks over."""
        return self._press is not None and is_clear(self._press.hops)

    def advance(self, block: Block) -> list[KeyPress]:
        """Takes the next 20 ms; returns the keys released in them."""
        newest = block.heard[-BLOCK_SAMPLES - FRAME_SAMPLES :]
        windows = np.lib.stride_tricks.as_strided(  # sliding_window_view checks more than its result costs
            newest, (2, _WINDOW_SAMPLES), (newest.itemsize * FRAME_SAMPLES, newest.itemsize), writeable=False
        )
        parts = windows @ _PROBES
        squares = np.square(parts)
        squares = squares[:, :_NUM_PROBES] + squares[:, _NUM_PROBES:]
        lows = squares[:, :_HIGH_PROBE].argmax(axis=1).tolist()
        highs = squares[:, _HIGH_PROBE:].argmax(axis=1).tolist()
        powers = (np.square(windows) @ _WEIGHTS).tolist()
        released = []
        for index, digit in enumerate(zip(lows, highs, strict=True)):
            stands_out = _stands_out(squares[index], digit, powers[index])
            centre_ms = block.end_ms - BLOCK_MS + index * FRAME_MS
            released += self._take(_Hop(centre_ms, parts[index], powers[index], digit if stands_out else None))
        return released

    def rest(self, block: Block) -> list[KeyPress]:
        """Takes 20 ms in which nothing is to be heard."""
        self._recent.clear()
        if self._press is None:
            return []
        silence = [_Hop(block.end_ms - back_ms, None, 0.0, None) for back_ms in (BLOCK_MS, FRAME_MS)]
        return [key for hop in silence for key in self._take(hop)]

    def end(self) -> list[KeyPress]:
        """The audio ends here, or is interrupted."""
        self._recent.clear()
        return self._release()

    def _take(self, hop: _Hop) -> list[KeyPress]:
        released = []
        if self._press is not None and not self._press.goes_on(hop):
            released = self._release()
        if self._press is None and hop.digit is not None:
            self._press = _Press(hop.digit, self._recent, hop)
        self._recent.appendleft(hop)
        return released

    def _release(self) -> list[KeyPress]:
        press, self._press = self._press, None
        key = None if press is None else judge(press.digit, press.hops)
        return [] if key is None else [key]


def _stands_out(squares: NDArray[np.float32], digit: _Digit, power: float) -> bool:
    """Whether the loudest low and the loudest high probe may be a digit's."""
    low, high = digit
    if low >= len(LOW_HZ) or high >= len(HIGH_HZ):
        return False
    low_power, high_power = float(squares[low]) / 2, float(squares[_HIGH_PROBE + high]) / 2
    pair_power = low_power + high_power
    is_loud = pair_power > _MIN_POWER and pair_power > _MIN_SHARE * power
    return is_loud and _MIN_TWIST * low_power < high_power < _MAX_TWIST * low_power
