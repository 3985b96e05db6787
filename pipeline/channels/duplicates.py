"""Recognises that both channels carry the same audio: a mono call copied to both sides.

Theory of operation. Two copies differ by a gain and by what a codec rounded. So for each 10 ms frame the part of
channel 2 that is no multiple of channel 1 is compared with what rounding can leave. A call starts in SAME_SO_FAR: a
frame that is the same gives no words on channel 2, so that no word comes twice before it is sure; the first that
differs ends it.

    state         same, so often           differs
    SAME_SO_FAR   DUPLICATE                APART
    DUPLICATE     DUPLICATE                APART
    APART         DUPLICATE                APART

Rules:
1. Silence on both sides says nothing either way.
2. One frame that differs is enough to hear channel 2 again: better words twice than words lost.
"""

from enum import Enum, auto
from typing import Final

import numpy as np

from pipeline.types import FRAME_MS, Samples

SILENT_POWER = 10.0 ** (-60 / 10)
"""-60 dBFS: below the quietest speech that a line carries."""
_SAME_SHARE = 0.01
"""-20 dB: G.711 leaves about -37 dB of what it rounds, twice for two copies (ITU-T G.711, 33 dB at its worst)."""
_ROUNDING_POWER = (10.0 / 32_768) ** 2
"""-70 dBFS: two roundings by A-law's smallest step, with 3 dB to spare."""
_MAX_GAIN = 2.0
"""6 dB; beyond this it is a leak."""
_SURE_FRAMES = 2_000 // FRAME_MS
"""2 s of sound, every frame of it the same."""


class Likeness(Enum):
    """What one frame says about two channels."""

    SILENT = 0
    SAME = 1
    DIFFERENT = 2


class _State(Enum):
    SAME_SO_FAR = auto()
    DUPLICATE = auto()
    APART = auto()


def likeness(first: Samples, second: Samples) -> Likeness:
    """Compares 10 ms of two channels, each of shape `(frame_samples,)`."""
    energy_1, energy_2 = float(np.dot(first, first)), float(np.dot(second, second))
    num_samples = len(first)
    louder, fainter = max(energy_1, energy_2), min(energy_1, energy_2)
    if louder < num_samples * SILENT_POWER:
        return Likeness.SILENT
    if louder > _MAX_GAIN**2 * fainter:
        return Likeness.DIFFERENT
    product = float(np.dot(first, second))
    # The rest of the second when the first, at its best gain, is taken off it.
    rest = energy_2 - product * product / energy_1
    is_same = product > 0 and rest <= _SAME_SHARE * energy_2 + num_samples * _ROUNDING_POWER
    return Likeness.SAME if is_same else Likeness.DIFFERENT


class DuplicateWatch:
    """Follows two channels, frame by frame."""

    def __init__(self) -> None:
        self._state: _State = _State.SAME_SO_FAR
        self._same_frames = 0
        self._frame = 0
        self.since_frame = 0
        """First frame of the sound that has been the same."""

    @property
    def is_duplicate(self) -> bool:
        """Whether it is sure that both channels are the same."""
        return self._state is _State.DUPLICATE

    def hear(self, like: Likeness) -> bool:
        """Takes what the next frame says; returns whether channel 2 shall give no words for it."""
        self._frame += 1
        if like is Likeness.DIFFERENT:
            self._state = _State.APART
            self._same_frames = 0
        elif like is Likeness.SAME:
            if self._same_frames == 0:
                self.since_frame = self._frame - 1
            self._same_frames += 1
            if self._same_frames >= _SURE_FRAMES:
                self._state = _State.DUPLICATE
        return self._state is not _State.APART

    def skip(self, num_frames: int) -> None:
        """Time passes without audio."""
        self._frame += num_frames


MIN_COPY_FRAMES: Final = 10
"""100 ms of sound: less says too little of a segment."""
_COPY_SHARE = 0.9
"""Of a segment's sound; the rest may be a lost packet on one side."""


def is_copy(num_same: int, num_different: int) -> bool:
    """Whether a segment of channel 2 with so many frames of each kind says what channel 1 says."""
    return num_same >= MIN_COPY_FRAMES and num_same >= _COPY_SHARE * (num_same + num_different)
