"""Both channels of a call side by side: whose sound each frame is, what is told about it, and which segments count.

Rules:
1. What one party says gives words on its own channel alone, also where it is heard on the other.
2. Whatever may be a channel's own speech counts as that.
3. It all depends on the audio alone: frame by frame at first, and once more for each whole segment when it is
   closed, by what has been learnt meanwhile.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

import numpy as np

from pipeline.channels.bands import HISTORY_FRAMES, BandHistory
from pipeline.channels.crosstalk import MAX_LAG_FRAMES
from pipeline.channels.duplicates import SILENT_POWER, DuplicateWatch, Likeness, is_copy, likeness
from pipeline.channels.leakage import LeakWatch
from pipeline.events import SceneEvent, SceneKind, WithheldReason
from pipeline.types import FRAME_MS, Samples

_COPY_CHANNEL = 2
_NEWS_FRAMES = 100 // FRAME_MS
"""How often it is looked for something to tell."""


class Origin(Enum):
    """Whose sound a frame of a channel is."""

    OWN = "OWN"
    LEAK = "LEAK"
    COPY = "COPY"


_ALL_OWN = {1: Origin.OWN, 2: Origin.OWN}
_COPIED = {1: Origin.OWN, 2: Origin.COPY}


class ChannelPair:
    """The two channels of one call, which are tagged 1 and 2; frames count from 0."""

    def __init__(self, frame_samples: int, start_ms: int) -> None:
        """Takes the samples of 10 ms, and where in the call the first frame lies."""
        self._start_ms = start_ms
        self._duplicates = DuplicateWatch()
        self._history = BandHistory(frame_samples)
        self._leaks = {tag: LeakWatch(self._history, tag - 1) for tag in (1, 2)}
        self._likeness = np.zeros(HISTORY_FRAMES, dtype=np.uint8)
        self._last_sound = [-HISTORY_FRAMES, -HISTORY_FRAMES]
        self._frame = 0
        self._told: dict[SceneKind | int, SceneEvent] = {}

    def hear(self, frame: Samples) -> Mapping[int, Origin]:
        """Takes 10 ms of both channels, shape `(2, frame_samples)`; returns whose sound it is, by channel_tag."""
        like = likeness(frame[0], frame[1])
        self._likeness[self._frame % HISTORY_FRAMES] = like.value
        self._history.hear(frame)
        is_copy_now = self._duplicates.hear(like)
        self._frame += 1
        if is_copy_now:
            return _COPIED
        if like is Likeness.SILENT and all(leak.began_frame is None for leak in self._leaks.values()):
            return _ALL_OWN
        sounds = [False, False] if like is Likeness.SILENT else self._sounds(frame)
        return {tag: self._origin(tag, sounds) for tag in self._leaks}

    def skip(self, num_frames: int) -> None:
        """Time passes without audio."""
        gone = (self._frame + np.arange(min(num_frames, HISTORY_FRAMES))) % HISTORY_FRAMES
        self._likeness[gone] = Likeness.SILENT.value
        self._history.skip(num_frames)
        self._duplicates.skip(num_frames)
        self._frame += num_frames

    def withheld(self, channel_tag: int, start_frame: int, end_frame: int) -> WithheldReason | None:
        """Why a segment gives no words on its channel; None where it may be its own."""
        if channel_tag == _COPY_CHANNEL and self._is_copied(start_frame, end_frame):
            return WithheldReason.DUPLICATE
        if self._leaks[channel_tag].explains(start_frame, end_frame):
            return WithheldReason.CROSSTALK
        return None

    def news(self, *, at_end: bool = False) -> Iterator[SceneEvent]:
        """What there is to tell since the last time: each thing when it is recognised and when it is over."""
        if self._frame % _NEWS_FRAMES and not at_end:
            return
        since = self._duplicates.since_frame if self._duplicates.is_duplicate and not at_end else None
        yield from self._tell(SceneKind.DUPLICATE_CHANNEL, _COPY_CHANNEL, since, self._frame)
        for tag, leak in self._leaks.items():
            began = None if at_end else leak.began_frame
            yield from self._tell(SceneKind.CROSSTALK, tag, began, leak.last_frame)

    def _tell(self, kind: SceneKind, tag: int, began_frame: int | None, end_frame: int) -> Iterator[SceneEvent]:
        key: SceneKind | int = kind if kind is SceneKind.DUPLICATE_CHANNEL else tag
        told = self._told.get(key)
        if (told is None) == (began_frame is None):
            return
        offset_ms = told.offset_ms if told is not None else self._start_ms + (began_frame or 0) * FRAME_MS
        event = SceneEvent(
            kind=kind,
            channel_tag=tag,
            offset_ms=offset_ms,
            duration_ms=max(0, self._start_ms + end_frame * FRAME_MS - offset_ms),
            is_over=told is not None,
        )
        if told is None:
            self._told[key] = event
        else:
            del self._told[key]
        yield event

    def _sounds(self, frame: Samples) -> list[bool]:
        limit = frame.shape[1] * SILENT_POWER
        sounds = [float(np.dot(samples, samples)) > limit for samples in frame]
        for channel, sounding in enumerate(sounds):
            if sounding:
                self._last_sound[channel] = self._frame
        return sounds

    def _origin(self, tag: int, sounds: list[bool]) -> Origin:
        voice_sounded = self._frame - self._last_sound[2 - tag] <= MAX_LAG_FRAMES
        is_leak = self._leaks[tag].hear(listener_sounds=sounds[tag - 1], voice_sounded=voice_sounded)
        return Origin.LEAK if is_leak else Origin.OWN

    def _is_copied(self, start_frame: int, end_frame: int) -> bool:
        begin = max(start_frame, self._frame - HISTORY_FRAMES, 0)
        kinds = self._likeness[np.arange(begin, end_frame) % HISTORY_FRAMES]
        num_same = int(np.count_nonzero(kinds == Likeness.SAME.value))
        return is_copy(num_same, int(np.count_nonzero(kinds == Likeness.DIFFERENT.value)))
