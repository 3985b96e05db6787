"""The last half minute of two channels as levels of a few bands, for comparing them over time.

Each frame is the spectrum of 20 ms (Hann window, 10 ms apart) in ten bands of the telephone's width. Frames are
transformed many at a time: nobody pays for levels that nobody asks for.
"""

import numpy as np
from numpy.typing import NDArray

from pipeline.types import FRAME_MS, Samples

Levels = NDArray[np.float32]
"""dB, shape `(num_frames, NUM_BANDS)`."""

NUM_BANDS = 10
HISTORY_FRAMES = 30_000 // FRAME_MS
"""As long as the longest segment and its pre-roll."""
FLOOR_DB = -75.0
"""Per band: about a clean line's noise. Below it levels say nothing."""
_LOW_HZ, _HIGH_HZ = 200.0, 3_400.0
_BATCH_FRAMES = 64
_FRAMES_PER_S = 1000 // FRAME_MS


def _band_matrix(frame_samples: int) -> NDArray[np.float32]:
    """Power spectrum to power of each band, shape `(num_bins, NUM_BANDS)`; bands get wider upwards."""
    rate_hz = frame_samples * _FRAMES_PER_S
    bins_hz = np.fft.rfftfreq(2 * frame_samples, 1 / rate_hz)
    edges = np.geomspace(_LOW_HZ + 300, _HIGH_HZ + 300, NUM_BANDS + 1) - 300
    band = np.searchsorted(edges, bins_hz, side="right") - 1
    matrix = (band[:, None] == np.arange(NUM_BANDS)).astype(np.float32)
    # Parseval: twice for the negative frequencies, by the window's energy.
    window_energy = float(np.sum(np.hanning(2 * frame_samples) ** 2))
    return np.asarray(matrix * (2 / (window_energy * 2 * frame_samples)), dtype=np.float32)


class BandHistory:
    """Levels of both channels; frames count from 0."""

    def __init__(self, frame_samples: int) -> None:
        """Takes the samples of 10 ms."""
        self._frame_samples = frame_samples
        self._window = np.hanning(2 * frame_samples).astype(np.float32)
        self._bands = _band_matrix(frame_samples)
        self._pending = np.zeros((2, (_BATCH_FRAMES + 1) * frame_samples), dtype=np.float32)
        self._num_pending = 0
        # Written twice, half a ring apart, so that any stretch lies in one piece.
        self._levels = np.full((2, 2 * HISTORY_FRAMES, NUM_BANDS), FLOOR_DB, dtype=np.float32)
        self._frame = 0

    @property
    def num_frames(self) -> int:
        """Frames heard so far."""
        return self._frame + self._num_pending

    def hear(self, frame: Samples) -> None:
        """Takes 10 ms of both channels, shape `(2, frame_samples)`."""
        start = (self._num_pending + 1) * self._frame_samples
        self._pending[:, start : start + self._frame_samples] = frame
        self._num_pending += 1
        if self._num_pending == _BATCH_FRAMES:
            self._transform()

    def skip(self, num_frames: int) -> None:
        """Time passes without audio."""
        self._transform()
        self._pending[:] = 0
        silence = np.full((2, min(num_frames, HISTORY_FRAMES), NUM_BANDS), FLOOR_DB, dtype=np.float32)
        self._frame += num_frames - silence.shape[1]
        self._store(silence)

    def levels(self, channel: int, start_frame: int, end_frame: int) -> Levels:
        """Levels of channel 0 or 1; frames from before the call, or forgotten, are silence."""
        self._transform()
        oldest = max(0, self._frame - HISTORY_FRAMES)
        begin = max(start_frame, oldest)
        position = begin % HISTORY_FRAMES
        known = self._levels[channel, position : position + max(0, end_frame - begin)]
        if begin == start_frame:
            return known
        missing = np.full((min(begin, end_frame) - start_frame, NUM_BANDS), FLOOR_DB, dtype=np.float32)
        return np.concatenate([missing, known])

    def _transform(self) -> None:
        count, size = self._num_pending, self._frame_samples
        if count == 0:
            return
        parts = self._pending[:, : (count + 1) * size].reshape(2, count + 1, size)
        windows = np.concatenate([parts[:, :-1], parts[:, 1:]], axis=2) * self._window
        spectrum = np.fft.rfft(windows)
        power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32) @ self._bands
        self._store(10 * np.log10(power + np.float32(10 ** (FLOOR_DB / 10))))
        self._pending[:, :size] = self._pending[:, count * size : (count + 1) * size]
        self._num_pending = 0

    def _store(self, levels: NDArray[np.float32]) -> None:
        count = levels.shape[1]
        places = (self._frame + np.arange(count)) % HISTORY_FRAMES
        self._levels[:, places] = levels
        self._levels[:, places + HISTORY_FRAMES] = levels
        self._frame += count
