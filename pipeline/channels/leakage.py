"""Follows the leak from one channel into the other: finds its path, keeps it as long as it holds, judges each frame."""

import numpy as np
from numpy.typing import NDArray

from pipeline.channels.bands import BandHistory, Levels
from pipeline.channels.crosstalk import ALL_LAGS, MAX_LAG_FRAMES, EchoPath, find_path, is_active, is_explained
from pipeline.types import FRAME_MS

_WINDOW_FRAMES = 1_500 // FRAME_MS
_INTERVAL_FRAMES = 200 // FRAME_MS
_JUDGED_FRAMES = 30 // FRAME_MS
"""Judged together: shorter than an onset, and the pre-roll keeps what was judged late."""
_MIN_FRAMES = 500 // FRAME_MS
"""Sound in the window before it says anything."""
_FOUND_CORRELATION = 0.7
_KEPT_CORRELATION = 0.45
_MIN_SEGMENT_FRAMES = 200 // FRAME_MS
_SEGMENT_CORRELATION = 0.75
"""A whole segment has no later evidence to put it right."""
_EXPLAINED_CORRELATION = 0.65
_MAX_OWN_RUN = 120 // FRAME_MS
"""Longest sound in a leak that its path does not explain: the shortest word is longer, what codecs and noise leave in
a real leak was up to 110 ms."""
_MAX_OWN_SHARE = 0.25
"""Of a leak's sound, in such short pieces."""
_WITHIN_FRAMES = 200 // FRAME_MS
"""A leak's own pauses are part of it."""
_MAX_SEARCH_FRAMES = 3_000 // FRAME_MS
"""Of sound: a leak that lasts longer has been found before."""
_OVER_FRAMES = 1_000 // FRAME_MS
"""A leak unheard for so long is over."""


class LeakWatch:
    """One direction: what `listener` hears of the other channel (0 or 1)."""

    def __init__(self, history: BandHistory, listener: int) -> None:
        self._history = history
        self._listener = listener
        self._path: EchoPath | None = None
        self._since_search = 0
        self._judged_frame = 0
        self._is_leak = False
        self.began_frame: int | None = None
        """First frame of the leak under way; None while there is none."""
        self.last_frame = 0
        """Newest frame that was a leak."""

    def hear(self, *, listener_sounds: bool, voice_sounded: bool) -> bool:
        """The history has a new frame; returns whether all that the listener hears in it is the other voice.

        Args:
            listener_sounds: whether the new frame of the listener is louder than silence.
            voice_sounded: whether the other channel was, within the longest delay.
        """
        frame = self._history.num_frames
        if self.began_frame is not None and frame - self.last_frame > _OVER_FRAMES:
            self.began_frame = None
        if not (listener_sounds and voice_sounded):
            return not listener_sounds and self.began_frame is not None and frame - self.last_frame <= _WITHIN_FRAMES
        self._since_search += 1
        if self._since_search >= _INTERVAL_FRAMES:
            self._since_search = 0
            self._path = self._search(max(0, frame - _WINDOW_FRAMES), frame)
        if self._path is None:
            return False
        if frame - self._judged_frame >= _JUDGED_FRAMES:
            self._is_leak = self._explains(frame)
            self._judged_frame = frame
        if not self._is_leak:
            return False
        if self.began_frame is None:
            self.began_frame = frame - 1
        self.last_frame = frame
        return True

    def explains(self, start_frame: int, end_frame: int) -> bool:
        """Whether a whole segment of the listener is nothing but the other voice."""
        heard, voice = self._levels(start_frame, end_frame)
        active = is_active(heard)
        num_active = int(active.sum())
        if num_active < _MIN_SEGMENT_FRAMES or _is_own(active & ~_near(is_active(voice)), num_active):
            return False
        if self._path is None and num_active > _MAX_SEARCH_FRAMES:
            return False
        path = self._path or find_path(heard, voice, active, _SEGMENT_CORRELATION)
        if path is None:
            return False
        explained = is_explained(path, heard, voice)
        if _is_own(active & ~explained, num_active):
            return False
        tested = _first(active & explained, _MAX_SEARCH_FRAMES)
        return find_path(heard, voice, tested, _EXPLAINED_CORRELATION) is not None

    def _search(self, start_frame: int, end_frame: int) -> EchoPath | None:
        heard, voice = self._levels(start_frame, end_frame)
        counted = is_active(heard)
        known = self._path
        if known is not None:
            counted &= is_explained(known, heard, voice)
        if int(counted.sum()) < _MIN_FRAMES:
            return known
        if known is None:
            return find_path(heard, voice, counted, _FOUND_CORRELATION)
        nearby = ALL_LAGS[max(0, known.lag_frames - 1) : known.lag_frames + 2]
        return find_path(heard, voice, counted, _KEPT_CORRELATION, nearby)

    def _explains(self, frame: int) -> bool:
        """Of the newest frames all that sound."""
        heard, voice = self._levels(frame - _JUDGED_FRAMES, frame)
        if self._path is None:
            return False
        return bool(np.all(is_explained(self._path, heard, voice) | ~is_active(heard)))

    def _levels(self, start_frame: int, end_frame: int) -> tuple[Levels, Levels]:
        heard = self._history.levels(self._listener, start_frame, end_frame)
        return heard, self._history.levels(1 - self._listener, start_frame - MAX_LAG_FRAMES, end_frame)


def _near(voice_sounds: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which frames the voice sounds in, or did within the longest delay; drops that delay in front."""
    heard_so_far = np.concatenate([[0], np.cumsum(voice_sounds)])
    return np.asarray(heard_so_far[MAX_LAG_FRAMES + 1 :] > heard_so_far[: -MAX_LAG_FRAMES - 1])


def _first(flags: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """The first so many of the flags that are set."""
    return np.asarray(flags & (np.cumsum(flags) <= count))


def _is_own(unexplained: NDArray[np.bool_], num_active: int) -> bool:
    """Whether the sound that is unexplained may be a word."""
    total = int(unexplained.sum())
    if total > _MAX_OWN_SHARE * num_active:
        return True
    ends = np.flatnonzero(np.diff(np.concatenate([[False], unexplained, [False]]).astype(np.int8)))
    return bool(total) and int(np.max(ends[1::2] - ends[::2])) > _MAX_OWN_RUN
