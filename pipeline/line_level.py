"""How loud a line is, and how loud its noise: what decides whether the costly stages are worth running.

The noise floor is the lowest level of the last seconds (minimum statistics; Martin 2001, IEEE Trans. SAP 9(5)):
speech pauses for 40 ms every other second or so, noise does not.
"""

from collections import deque

from pipeline.types import FRAME_SAMPLES

_BLOCK_FRAMES = 4
_FLOOR_BLOCKS = 75
"""3 s."""
_FIRST_FLOOR_BLOCKS = 12
"""0.5 s: before that a call that begins with speech would pass for noise."""

_NOISY_DBFS, _CLEAN_DBFS = -50.0, -54.0
"""A floor above the first makes a clean line noisy, one below the second makes a noisy line clean."""
_NOISY_RANGE_DB, _CLEAN_RANGE_DB = 25.0, 30.0
"""So does a loudest block that stands out from the floor less or more than this: speech far above noise is clear."""

_NOISY_FLOOR = _BLOCK_FRAMES * FRAME_SAMPLES * 10 ** (_NOISY_DBFS / 10)
_CLEAN_FLOOR = _BLOCK_FRAMES * FRAME_SAMPLES * 10 ** (_CLEAN_DBFS / 10)
_NOISY_RANGE, _CLEAN_RANGE = 10 ** (_NOISY_RANGE_DB / 10), 10 ** (_CLEAN_RANGE_DB / 10)

_QUIET_RMS = 1e-3
"""-60 dBFS: below the quietest speech that a line carries (-45 dBFS), above the noise of a clean one."""
_QUIET_FRAME_ENERGY = FRAME_SAMPLES * _QUIET_RMS**2
_ABOVE_FLOOR = 2.5
"""4 dB: noise alone does not vary so much from frame to frame, and speech that does not stand out so far is lost."""
_QUIET_FRAMES_BEFORE_REST = 30
"""Until the detectors have surely let go of what was said."""


class LineLevel:
    """One channel's level, frame by frame."""

    def __init__(self) -> None:
        self.is_noisy = False
        """Whether the floor lies so high that it may be taken for speech, or hide it."""
        self._block_energy = 0.0
        self._block_frames = 0
        self._blocks: deque[float] = deque(maxlen=_FLOOR_BLOCKS)
        self._quiet_below = _QUIET_FRAME_ENERGY
        self._quiet_frames = 0

    @property
    def is_at_rest(self) -> bool:
        """Whether there has been nothing but the floor for a while."""
        return self._quiet_frames > _QUIET_FRAMES_BEFORE_REST

    def hear(self, frame_energy: float) -> None:
        """Takes the sum of squares of the next 10 ms at 16 kHz."""
        self._quiet_frames = self._quiet_frames + 1 if frame_energy < self._quiet_below else 0
        self._block_energy += frame_energy
        self._block_frames += 1
        if self._block_frames == _BLOCK_FRAMES:
            self._blocks.append(self._block_energy)
            self._block_energy, self._block_frames = 0.0, 0
            if len(self._blocks) >= _FIRST_FLOOR_BLOCKS:
                self._judge(min(self._blocks), max(self._blocks))

    def _judge(self, floor_energy: float, peak_energy: float) -> None:
        if self.is_noisy:
            self.is_noisy = floor_energy > _CLEAN_FLOOR and peak_energy < _CLEAN_RANGE * floor_energy
        else:
            self.is_noisy = floor_energy > _NOISY_FLOOR and peak_energy < _NOISY_RANGE * floor_energy
        self._quiet_below = max(_QUIET_FRAME_ENERGY, _ABOVE_FLOOR * floor_energy / _BLOCK_FRAMES)
