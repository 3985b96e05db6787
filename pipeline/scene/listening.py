"""The newest audio of a channel, in blocks of two frames: what the detectors look at.

Numpy costs more per call than per sample, so detectors work on blocks and not on frames. A block always holds the
same two frames of the call, whatever the chunks were that brought them.
"""

from dataclasses import dataclass, field

import numpy as np

from pipeline.types import FRAME_MS, FRAME_SAMPLES, Samples

BLOCK_FRAMES = 2
BLOCK_MS = BLOCK_FRAMES * FRAME_MS
BLOCK_SAMPLES = BLOCK_FRAMES * FRAME_SAMPLES
HISTORY_SAMPLES = 2_400
"""150 ms: the longest window that a detector looks at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One step of a channel. Valid until the next one: `heard` is a view of a buffer."""

    end_ms: int
    """Milliseconds of the channel's audio up to here."""
    energy: float
    """Sum of squares of the newest `BLOCK_SAMPLES`."""
    heard: Samples = field(repr=False, compare=False)
    """The newest `HISTORY_SAMPLES`, shape `(HISTORY_SAMPLES,)`, 16 kHz."""


class BlockBuffer:
    """Gathers frames to blocks."""

    def __init__(self) -> None:
        self._heard = np.zeros(HISTORY_SAMPLES + BLOCK_SAMPLES, dtype=np.float32)
        self._num_frames = 0
        self._filled_frames = 0

    @property
    def now_ms(self) -> int:
        """Milliseconds of the channel's audio, also those that do not fill a block yet."""
        return self._num_frames * FRAME_MS

    def append(self, frame: Samples) -> Block | None:
        """Takes 10 ms, shape `(160,)`; returns a block when one is full."""
        self._num_frames += 1
        start = HISTORY_SAMPLES + self._filled_frames * FRAME_SAMPLES
        self._heard[start : start + FRAME_SAMPLES] = frame
        self._filled_frames += 1
        if self._filled_frames < BLOCK_FRAMES:
            return None
        self._filled_frames = 0
        self._heard[:HISTORY_SAMPLES] = self._heard[BLOCK_SAMPLES:]
        newest = self._heard[HISTORY_SAMPLES:]
        return Block(end_ms=self.now_ms, energy=float(np.dot(newest, newest)), heard=self._heard[:HISTORY_SAMPLES])

    def newest(self, num_samples: int) -> Samples:
        """A view of the newest audio, also of a frame that does not fill a block yet."""
        end = HISTORY_SAMPLES + self._filled_frames * FRAME_SAMPLES
        return self._heard[end - num_samples : end]

    def skip(self, num_frames: int) -> None:
        """Time passes without audio."""
        self._num_frames += num_frames
        self._filled_frames = 0
        self._heard[:] = 0
