"""Judges whether two tones that came and went were a key (ITU-T Q.24).

Rules:
1. Length, by where the loudness crosses one half: 23 ms are rejected, 40 ms accepted.
2. Frequencies, by how fast the phases turn against the nominal ones: 1.5 % off is accepted, 3.5 % rejected.
3. On a line that is quiet or noisy, a key's two tones hold nearly all energy. Under somebody's voice they do not, and
   must then show what no voice has: both tones exact, and even in loudness and phase. The fewer windows there are to
   see that in, the more even they must be. Speech that looks like a digit for a moment (talk-off) fails here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot

import numpy as np
from numpy.typing import NDArray

from pipeline.types import FRAME_MS

LOW_HZ = (697, 770, 852, 941)
HIGH_HZ = (1209, 1336, 1477, 1633)
_DIGITS = ("123A", "456B", "789C", "*0#D")
"""By low, then high frequency."""
_FREQUENCIES_HZ = {
    digit: (float(low), float(high))
    for low, row in zip(LOW_HZ, _DIGITS, strict=True)
    for high, digit in zip(HIGH_HZ, row, strict=True)
}
ALL_DIGITS = frozenset(_FREQUENCIES_HZ)

_HOP_S = FRAME_MS / 1000
_WINDOW_S = 2 * _HOP_S
_MIN_PRESS_MS = 30.0
_HALF = 0.5
_CORE = 0.6
"""Windows that lie inside a press have at least this share of its amplitude."""
_MIN_CORE_HOPS = 2
_CLEAR_SHARE = 0.88
"""Of all energy; noise at 15 dB below the tones leaves 0.94. Speech was never seen above 0.83."""
_MAX_DEVIATION = 0.025
_MAX_CORRECTED_DEVIATION, _MAX_CORRECTED_UNEVENNESS = 0.018, 0.06
"""Tones as far off as Q.24 allows are seen weaker than they are; who is told so must be even."""
_COVERED_MIN_MS = 36.0
_COVERED_MAX_DEVIATION = 0.008
"""Oscillators of telephones are this exact."""
_COVERED_MAX_UNEVENNESS = ((8, 0.09), (6, 0.055), (4, 0.03))
"""Least windows, and the most unevenness plus `_DEVIATION_WEIGHT` times deviation that they may show."""
_DEVIATION_WEIGHT = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPress:
    """A key that was pressed and released, in milliseconds of the channel's audio."""

    digit: str
    begin_ms: int
    end_ms: int

    @property
    def frequencies_hz(self) -> tuple[float, float]:
        """Of its two tones."""
        return _FREQUENCIES_HZ[self.digit]


class HopTones:
    """A digit's two tones in one window of 20 ms."""

    __slots__ = ("amplitude", "centre_ms", "high", "low", "power")

    def __init__(self, centre_ms: int, low: complex, high: complex, power: float) -> None:
        """Complex amplitudes, phases those at the window's centre; `power` is that of all there is."""
        self.centre_ms = centre_ms
        self.low = low
        self.high = high
        self.power = power
        self.amplitude = hypot(abs(low), abs(high))

    @property
    def share(self) -> float:
        """Of the two tones in all energy."""
        return self.amplitude**2 / (2 * self.power) if self.power else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steadiness:
    """How much a tone is like a machine's."""

    deviation: float
    """Share by which its frequency is off."""
    unevenness: float
    """Share of its energy that is not one tone of one loudness."""


def is_clear(hops: Sequence[HopTones]) -> bool:
    """Whether the newest windows of a press hold nothing but the key."""
    return len(hops) >= _MIN_CORE_HOPS and all(hop.share >= _CLEAR_SHARE for hop in hops[-_MIN_CORE_HOPS:])


def judge(digit: tuple[int, int], hops: Sequence[HopTones]) -> KeyPress | None:
    """What the windows of a press were: a key, or nothing.

    Args:
        digit: low and high frequency, by index.
        hops: windows in order, 10 ms apart but for single ones left out; the first and last may lie at its edges.
    """
    begin_ms, end_ms = _bounds_ms(hops)
    least = _CORE * float(np.median([hop.amplitude for hop in hops]))
    core = [hop for hop in hops if hop.amplitude >= least]
    if end_ms - begin_ms < _MIN_PRESS_MS or len(core) < _MIN_CORE_HOPS:
        return None
    low, high = digit
    centres_s = np.array([hop.centre_ms for hop in core]) / 1000
    tones = (
        _steadiness(np.array([hop.low for hop in core]), centres_s, LOW_HZ[low]),
        _steadiness(np.array([hop.high for hop in core]), centres_s, HIGH_HZ[high]),
    )
    deviation = max(tone.deviation for tone in tones)
    unevenness = max(tone.unevenness for tone in tones)
    losses = (_loss(tones[0].deviation * LOW_HZ[low]), _loss(tones[1].deviation * HIGH_HZ[high]))
    if max(hop.share for hop in core) >= _CLEAR_SHARE:
        is_key = deviation <= _MAX_DEVIATION
    elif deviation <= _MAX_CORRECTED_DEVIATION and max(_true_share(hop, losses) for hop in core) >= _CLEAR_SHARE:
        is_key = unevenness <= _MAX_CORRECTED_UNEVENNESS
    else:
        is_key = end_ms - begin_ms >= _COVERED_MIN_MS and _is_machine_made(len(core), deviation, unevenness)
    return KeyPress(digit=_DIGITS[low][high], begin_ms=round(begin_ms), end_ms=round(end_ms)) if is_key else None


def _loss(off_hz: float) -> float:
    """Share of a tone's power that a probe this far from its frequency sees through a Hann window."""
    bins = off_hz * _WINDOW_S
    return float(np.sinc(bins) / (1 - bins * bins)) ** 2


def _true_share(hop: HopTones, losses: tuple[float, float]) -> float:
    """What a hop's share would be if the probes were at the tones' own frequencies."""
    power = abs(hop.low) ** 2 / losses[0] + abs(hop.high) ** 2 / losses[1]
    return power / (2 * hop.power) if hop.power else 0.0


def _is_machine_made(num_hops: int, deviation: float, unevenness: float) -> bool:
    limit = next((limit for least, limit in _COVERED_MAX_UNEVENNESS if num_hops >= least), 0.0)
    return deviation <= _COVERED_MAX_DEVIATION and unevenness + _DEVIATION_WEIGHT * deviation <= limit


def _bounds_ms(hops: Sequence[HopTones]) -> tuple[float, float]:
    """Where the loudness crosses one half; linear between windows, nothing before and behind."""
    half = _HALF * max(hop.amplitude for hop in hops)
    loud = [index for index, hop in enumerate(hops) if hop.amplitude >= half]

    def crossing_ms(index: int, step: int) -> float:
        inside = hops[index].amplitude
        outside = hops[index + step].amplitude if 0 <= index + step < len(hops) else 0.0
        return float(hops[index].centre_ms + step * FRAME_MS * (inside - half) / (inside - outside))

    return crossing_ms(loud[0], -1), crossing_ms(loud[-1], 1)


def _steadiness(tone: NDArray[np.complex128], centres_s: NDArray[np.float64], hz: float) -> _Steadiness:
    """From a tone's complex amplitudes in windows around these times."""
    still = tone * np.exp(-2j * np.pi * hz * centres_s)
    turns = (still[1:] * np.conj(still[:-1])).sum()
    turned_hz = float(np.angle(turns)) / (2 * np.pi * _HOP_S)
    one_tone = abs((still * np.exp(-2j * np.pi * turned_hz * centres_s)).mean()) ** 2
    return _Steadiness(deviation=abs(turned_hz) / hz, unevenness=1 - float(one_tone / np.square(np.abs(tone)).mean()))
