"""Whether a party's speech is too loud for its line, too quiet, or sits on a DC offset."""

import numpy as np

from pipeline.types import Samples

_ENOUGH_BLOCKS = 6
"""3 s of speech."""
_FULL_SCALE = 0.975
"""Just below the largest values of G.711."""
_CLIPPED_SHARE = 0.003
"""Of the samples of speech, flat tops of at least two; a recording at full level has none to a few in a minute."""
_QUIET_DBFS = -45.0
_OFFSET = 0.03


class SpeechLevel:
    """One channel, in blocks of speech."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._num_blocks = 0
        self._num_samples = 0
        self._num_clipped = 0
        self._sum = 0.0
        self._power_sum = 0.0

    def hear(self, samples: Samples) -> list[str]:
        """Takes a block of speech, shape `(num_samples,)`; says what is wrong, with remedies, every 3 s."""
        at_top, at_bottom = samples >= _FULL_SCALE, samples <= -_FULL_SCALE
        flat = np.count_nonzero(at_top[1:] & at_top[:-1]) + np.count_nonzero(at_bottom[1:] & at_bottom[:-1])
        mean = float(samples.mean())
        self._num_blocks += 1
        self._num_samples += len(samples)
        self._num_clipped += int(flat)
        self._sum += mean * len(samples)
        self._power_sum += float(samples @ samples) - mean**2 * len(samples)
        return self._faults() if self._num_blocks >= _ENOUGH_BLOCKS else []

    def _faults(self) -> list[str]:
        clipped, offset = self._num_clipped / self._num_samples, self._sum / self._num_samples
        level_dbfs = 10 * np.log10(max(self._power_sum / self._num_samples, 1e-20))
        self._begin()
        faults = []
        if clipped > _CLIPPED_SHARE:
            faults.append(f"it clips ({clipped:.1%} of its samples are at full scale); lower the gain before it")
        if level_dbfs < _QUIET_DBFS:
            faults.append(f"speech is at {level_dbfs:.0f} dBFS only, words may get lost; raise the gain before it")
        if abs(offset) > _OFFSET:
            faults.append(f"it has a DC offset of {offset:.0%} of full scale, which is taken out; check the converter")
        return faults
