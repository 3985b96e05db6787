"""Whether a line carries music: notes hold their pitch, voices glide.

Theory of operation. Every 60 ms one spectrum of 128 ms is taken (bins 7.8 Hz apart, 250 to 3400 Hz). A peak is
*held* when a peak lay within a bin of it 120 and 240 ms ago. In speech the pitch moves by some per cent in that
time, so that harmonics leave their bins; in music most peaks are held, and several at once, which no dial tone
or key has. Three figures over 2.4 s are compared with limits, and the weakest decides: held peaks a spectrum, their
share of all peaks, and their share of the power of all peaks.
The idea is that of peak tracks: Seyerlehner et al. 2007, "Automatic music detection in television productions".

Rules. Music begins when the score reaches 1 twice running; it ends when the score has been low for 3 s, or with
silence of 1.5 s. Speech over music lowers the score without ending it. Both ends are dated back. The limits were set
by hand between the figures of recorded speech in several languages and of hold music.

Spectra are taken eight at a time, counted from the first frame: results cannot depend on how audio arrives.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from pipeline.types import CORE_SAMPLE_RATE_HZ, FRAME_MS, FRAME_SAMPLES, Samples

_WINDOW_SAMPLES = 2_048
_HOP_FRAMES = 6
_HOP_SAMPLES = _HOP_FRAMES * FRAME_SAMPLES
_BLOCK_HOPS = 8
_BLOCK_FRAMES = _BLOCK_HOPS * _HOP_FRAMES
"""480 ms: how often there is a verdict."""
_KEPT_SAMPLES = _WINDOW_SAMPLES - _HOP_SAMPLES
_SCORED_HOPS = 40
"""2.4 s."""
_REMEMBERED_HOPS = 120
"""7.2 s: how far a beginning is dated back at most."""

_LOWEST_BIN = 250 * _WINDOW_SAMPLES // CORE_SAMPLE_RATE_HZ
_HIGHEST_BIN = 3_400 * _WINDOW_SAMPLES // CORE_SAMPLE_RATE_HZ
_AROUND_BINS = 8
_PEAK_OVER_AROUND = 3.0
"""5 dB over the mean power of the bins around it."""
_PEAK_UNDER_STRONGEST = 1e-3
"""-30 dB: what G.711 adds to a pure tone lies below."""
_LAG_HOPS = 2
_LAGS = 2

_SCORED_DBFS = -54.0
"""What is quieter has no say; with -60 dBFS six seconds of a recorded call passed for music."""
_SCORED_FRAME_ENERGY = FRAME_SAMPLES * 10 ** (_SCORED_DBFS / 10)
_SCORED_UNDER_LOUDEST = 1e-4
"""-40 dB: what a line's own hum is under the voices on it, however much both were amplified on the way."""
_AUDIBLE_DBFS = -66.0
"""What is louder may belong to music once that is found: many a piece begins and ends very softly."""
_AUDIBLE_FRAME_ENERGY = FRAME_SAMPLES * 10 ** (_AUDIBLE_DBFS / 10)
_RUN_GAP_FRAMES = 30
"""Sound after more silence than this begins anew."""
_SILENCE_FRAMES = 1_500 // FRAME_MS

_FULL_HELD_PEAKS, _FULL_HELD_SHARE, _FULL_HELD_POWER = 2.2, 0.19, 0.28
"""Where each figure makes a score of 1."""
_MIN_SOUNDING = 0.5
"""Share of the scored time that must not be quiet."""
_ENTER_SCORE, _LEAVE_SCORE = 1.0, 0.4
_ENTER_BLOCKS = 2
_LEAVE_BLOCKS = 6
"""2.9 s."""

_TONAL_PEAKS = 2
_TONAL_GAP_HOPS = 16
"""1 s: music may drum so long between notes while its beginning is looked for."""
_OPENING_FRAMES = 150
"""Sound that begins less than this before the first held notes belongs to the music."""

_HANN = np.hanning(_WINDOW_SAMPLES).astype(np.float32)
_Hops = NDArray[np.float64]


class MusicDetector:
    """One channel, 10 ms after 10 ms."""

    def __init__(self) -> None:
        self._num_frames = 0
        self._audio = np.zeros(_KEPT_SAMPLES + _BLOCK_FRAMES * FRAME_SAMPLES, np.float32)
        self._peaks = np.zeros((_LAGS * _LAG_HOPS, _HIGHEST_BIN - _LOWEST_BIN), np.bool_)
        self._hops: deque[_Hops] = deque([np.zeros(4)] * _REMEMBERED_HOPS, maxlen=_REMEMBERED_HOPS)
        self._scored_frame_energy = _SCORED_FRAME_ENERGY
        """Rises with the loudest block so far."""
        self._is_sounding_block = False
        self._run_start_frame = 0
        self._last_loud_frame = -_SILENCE_FRAMES
        self._blocks_above = self._blocks_below = 0
        self._begin_frame: int | None = None
        self._end_frame: int | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is music now."""
        return self._begin_frame is not None and self._end_frame is None

    @property
    def begin_frame(self) -> int | None:
        """Where the newest music began, in frames since the first one; None before any."""
        return self._begin_frame

    @property
    def end_frame(self) -> int | None:
        """First frame behind the newest music; None while it is on and before any."""
        return self._end_frame

    def advance(self, frame: Samples) -> None:
        """Takes 10 ms at 16 kHz, shape `(160,)`."""
        position = self._num_frames % _BLOCK_FRAMES
        start = _KEPT_SAMPLES + position * FRAME_SAMPLES
        self._audio[start : start + FRAME_SAMPLES] = frame
        energy = float(np.dot(frame, frame))
        if energy >= _AUDIBLE_FRAME_ENERGY:
            if self._num_frames - self._last_loud_frame > _RUN_GAP_FRAMES:
                self._run_start_frame = self._num_frames
            self._last_loud_frame = self._num_frames
            self._is_sounding_block |= energy >= self._scored_frame_energy
        self._num_frames += 1
        if position == _BLOCK_FRAMES - 1:
            self._close_block()

    def _close_block(self) -> None:
        if self._is_sounding_block:
            self._hops.extend(self._measured())
        else:
            self._peaks[:] = False
            self._hops.extend([np.zeros(4)] * _BLOCK_HOPS)
        newest = self._audio[_KEPT_SAMPLES:]
        scored_frame_energy = _SCORED_UNDER_LOUDEST * float(np.dot(newest, newest)) / _BLOCK_FRAMES
        self._scored_frame_energy = max(self._scored_frame_energy, scored_frame_energy)
        self._audio[:_KEPT_SAMPLES] = self._audio[-_KEPT_SAMPLES:]
        self._is_sounding_block = False
        self._judge()

    def _measured(self) -> list[_Hops]:
        """A row a hop: held peaks, peaks, share of the peaks' power that is held, whether it sounds at all."""
        windows = np.lib.stride_tricks.sliding_window_view(self._audio, _WINDOW_SAMPLES)[::_HOP_SAMPLES]
        spectrum = np.fft.rfft(windows * _HANN, axis=1)[:, _LOWEST_BIN - 1 : _HIGHEST_BIN + 1]
        power = (spectrum.real**2 + spectrum.imag**2).astype(np.float32, copy=False)
        peaks = np.concatenate([self._peaks, _peaks(power)])
        near = peaks.copy()
        near[:, 1:] |= peaks[:, :-1]
        near[:, :-1] |= peaks[:, 1:]
        held = peaks[_LAGS * _LAG_HOPS :].copy()
        for lag in range(1, _LAGS + 1):
            first = (_LAGS - lag) * _LAG_HOPS
            held &= near[first : first + _BLOCK_HOPS]
        self._peaks = peaks[-_LAGS * _LAG_HOPS :]
        inner, new = power[:, 1:-1], peaks[_LAGS * _LAG_HOPS :]
        share = (inner * held).sum(axis=1) / np.maximum((inner * new).sum(axis=1), np.finfo(np.float32).tiny)
        energies = np.einsum("ij,ij->i", windows[:, _KEPT_SAMPLES:], windows[:, _KEPT_SAMPLES:])
        sounding = energies >= _HOP_FRAMES * self._scored_frame_energy
        rows = np.stack([held.sum(axis=1), new.sum(axis=1), share, sounding], axis=1).astype(np.float64)
        return list(rows * sounding[:, None])

    def _score(self) -> float:
        held, peaks, power, sounding = np.sum(list(self._hops)[-_SCORED_HOPS:], axis=0)
        if sounding < _MIN_SOUNDING * _SCORED_HOPS:
            return 0.0
        figures = (
            held / sounding / _FULL_HELD_PEAKS,
            held / max(peaks, 1.0) / _FULL_HELD_SHARE,
            power / sounding / _FULL_HELD_POWER,
        )
        return float(min(figures))

    def _judge(self) -> None:
        silent_frames = self._num_frames - 1 - self._last_loud_frame
        if not self.is_on and silent_frames >= _SILENCE_FRAMES:
            self._blocks_above = 0
            return
        score = self._score()
        self._blocks_above = self._blocks_above + 1 if score >= _ENTER_SCORE else 0
        self._blocks_below = self._blocks_below + 1 if score < _LEAVE_SCORE else 0
        if not self.is_on:
            if self._blocks_above >= _ENTER_BLOCKS:
                self._begin_frame, self._end_frame = self._first_note_frame(), None
                self._blocks_below = 0
        elif silent_frames >= _SILENCE_FRAMES:
            self._end_frame = self._last_loud_frame + 1
            self._forget()
        elif self._blocks_below >= _LEAVE_BLOCKS:
            self._end_frame = min(self._last_note_frame(), self._last_loud_frame + 1)
            self._forget()

    def _forget(self) -> None:
        """What has been called music once does not count for the next music."""
        self._hops.extend([np.zeros(4)] * _REMEMBERED_HOPS)
        self._blocks_above = 0

    def _tonal_hops(self) -> list[int]:
        return [i for i, hop in enumerate(self._hops) if hop[0] >= _TONAL_PEAKS]

    def _first_note_frame(self) -> int:
        tonal = self._tonal_hops()
        first = tonal[-1]
        for index in reversed(tonal):
            if first - index > _TONAL_GAP_HOPS:
                break
            first = index
        hops_ago = _REMEMBERED_HOPS - first + _LAGS * _LAG_HOPS
        frame = max(self._num_frames - hops_ago * _HOP_FRAMES, 0, self._end_frame or 0)
        is_opening = self._run_start_frame > frame - _OPENING_FRAMES
        return max(self._run_start_frame, self._end_frame or 0) if is_opening else frame

    def _last_note_frame(self) -> int:
        tonal = self._tonal_hops()
        hops_ago = _REMEMBERED_HOPS - 1 - tonal[-1] if tonal else _REMEMBERED_HOPS
        begin = self._begin_frame or 0
        return max(self._num_frames - hops_ago * _HOP_FRAMES, begin + 1)


def _peaks(power: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which inner bins stand out, shape `(hops, bins - 2)`."""
    inner = power[:, 1:-1]
    sums = np.cumsum(np.pad(inner, ((0, 0), (_AROUND_BINS + 1, _AROUND_BINS))), axis=1, dtype=np.float64)
    width = 2 * _AROUND_BINS + 1
    around = (sums[:, width:] - sums[:, :-width]) / width
    least = np.maximum(_PEAK_OVER_AROUND * around, _PEAK_UNDER_STRONGEST * inner.max(axis=1, keepdims=True))
    peaks: NDArray[np.bool_] = (inner > power[:, :-2]) & (inner >= power[:, 2:]) & (inner > least)
    return peaks
