"""Takes a DC offset out of a line, frame by frame.

An offset costs loudness for nothing: detectors take it for sound that never ends, and levels for louder than they are.
It is followed by the mean of the last seconds and subtracted along a ramp, so that no step is heard. A line without one
passes unchanged, to the bit.
"""

import numpy as np

from pipeline.types import Samples

_MEMORY_FRAMES = 200
_FIRST_FRAMES = 10
"""Before so much was heard, a mean may be that of half a vowel."""
_PRESENT, _ABSENT = 4e-3, 2e-3
"""-48 and -54 dBFS: from the first on it is taken out, below the second no more."""


class OffsetRemover:
    """One channel."""

    def __init__(self) -> None:
        self._num_frames = 0
        self._mean = 0.0
        self._removed = 0.0
        self._is_present = False

    def remove(self, frame: Samples) -> Samples:
        """Takes the next 10 ms, shape `(frame_samples,)`."""
        self._num_frames = min(self._num_frames + 1, _MEMORY_FRAMES)
        self._mean += (float(frame.sum()) / len(frame) - self._mean) / self._num_frames
        if self._num_frames < _FIRST_FRAMES:
            return frame
        self._is_present = abs(self._mean) > (_ABSENT if self._is_present else _PRESENT)
        target = self._mean if self._is_present else 0.0
        if not target and not self._removed:
            return frame
        ramp = np.linspace(self._removed, target, len(frame), dtype=np.float32)
        self._removed = target
        return frame - ramp
