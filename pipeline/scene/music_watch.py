"""The music of one channel over gaps in its audio: told when it is recognised and when it is over."""

from pipeline.scene.lasting import Lasting
from pipeline.scene.music import MusicDetector
from pipeline.types import FRAME_MS, Samples


class MusicWatch:
    """Follows a detector and says what is new."""

    def __init__(self) -> None:
        self._detector = MusicDetector()
        self._first_frame = 0
        """Of this detector."""
        self._num_frames = 0
        self._told_begin_frame: int | None = None

    def advance(self, frame: Samples) -> Lasting | None:
        """Takes 10 ms at 16 kHz, shape `(160,)`."""
        self._detector.advance(frame)
        self._num_frames += 1
        begin, end = self._detector.begin_frame, self._detector.end_frame
        if self._told_begin_frame is None:
            if begin is None or end is not None:
                return None
            self._told_begin_frame = begin
            return self._music(begin, self._num_frames - self._first_frame, is_over=False)
        if end is None and begin == self._told_begin_frame:
            return None
        told, self._told_begin_frame = self._told_begin_frame, None
        return self._music(told, end if end is not None else self._num_frames - self._first_frame, is_over=True)

    def skip(self, num_frames: int) -> Lasting | None:
        """Time passes without audio: music is over."""
        over = self.end()
        self._num_frames += num_frames
        self._first_frame = self._num_frames
        self._detector = MusicDetector()
        return over

    def end(self) -> Lasting | None:
        """The audio ends."""
        told, self._told_begin_frame = self._told_begin_frame, None
        return None if told is None else self._music(told, self._num_frames - self._first_frame, is_over=True)

    def _music(self, begin_frame: int, end_frame: int, *, is_over: bool) -> Lasting:
        return Lasting(
            begin_ms=(self._first_frame + begin_frame) * FRAME_MS,
            end_ms=(self._first_frame + end_frame) * FRAME_MS,
            is_over=is_over,
        )
