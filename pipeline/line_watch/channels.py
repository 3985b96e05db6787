"""Whether samples of two channels lie in what was declared as one, or one channel in what was declared as two.

In one channel, every other sample is as loud as those between, and steps to the left are as large as steps to the
right. Two interleaved channels differ: in loudness when one party speaks, in steps when both carry the same. One
channel dealt out to two gives two that continue each other from sample to sample.
"""

from pipeline.types import Samples

_UNEVEN = 4.0
"""6 dB between even and odd samples, or between steps: over half a second one channel does not come near it."""
_EVEN = 1.3
_SMOOTH = 0.4
"""Steps this far below those of white noise."""
_LEAST_POWER = 1e-5
"""-50 dBFS."""


def looks_interleaved(samples: Samples) -> bool | None:
    """Whether one declared channel, shape `(num_samples,)`, holds two; None where it is too quiet to say."""
    even, odd, inward, outward = _powers(samples)
    if even + odd < 2 * _LEAST_POWER:
        return None
    return _ratio(even, odd) > _UNEVEN or _ratio(inward, outward) > _UNEVEN


def looks_dealt_out(channels: Samples) -> bool | None:
    """Whether two declared channels, shape `(2, num_samples)`, are one; None where a channel is too quiet to say."""
    even, odd, inward, outward = _powers(channels.T.reshape(-1))
    if min(even, odd) < _LEAST_POWER:
        return None
    is_even = _ratio(even, odd) < _EVEN and _ratio(inward, outward) < _EVEN
    return is_even and inward + outward < _SMOOTH * 2 * (even + odd)


def _powers(samples: Samples) -> tuple[float, float, float, float]:
    """Mean power of even samples, of odd ones, of steps from even to odd, and of steps from odd to even."""
    centred = samples[: len(samples) // 2 * 2] - samples.mean()
    even, odd = centred[::2], centred[1::2]
    inward, outward = odd - even, even[1:] - odd[:-1]
    return _power(even), _power(odd), _power(inward), _power(outward)


def _power(samples: Samples) -> float:
    return float(samples @ samples) / max(1, len(samples))


def _ratio(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return high / max(low, 1e-12)
