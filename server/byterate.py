"""Whether a live caller's bytes come as fast as its declared format says.

Eight kilohertz sent as sixteen, one channel as two or LINEAR16 as mu-law make a live line run at half or twice its
speed. A recording sent at once has no steady rate, and a caller that leaves out silence has none either: only a rate
that holds for several seconds in a row, and is that of another format, is told.
"""

from collections import deque

_WINDOW_S = 2.0
_NUM_WINDOWS = 4
_TOLERANCE = 0.1
"""Of a rate, over each window: messages of 100 ms and a jittery network stay within it."""
_FACTORS = (1 / 6, 1 / 4, 1 / 3, 1 / 2, 2.0, 3.0, 4.0, 6.0)
"""Between the byte rates of the formats in use."""


class ByteRateWatch:
    """One live call; told at most once."""

    def __init__(self, bytes_per_second: int, description: str) -> None:
        """`description` is the declared format, for the message."""
        self._bytes_per_second = bytes_per_second
        self._description = description
        self._begun_s: float | None = None
        self._num_bytes = 0
        self._shares: deque[float] = deque(maxlen=_NUM_WINDOWS)
        """Bytes arrived, as a factor of those declared, in each of the newest windows."""
        self._is_over = False

    def add_audio(self, num_bytes: int, now_s: float) -> str | None:
        """Audio arrived; returns what the caller should be told."""
        if self._is_over:
            return None
        if self._begun_s is None:
            self._begun_s = now_s  # what comes first may have waited: it opens the first window and does not count
            return None
        self._num_bytes += num_bytes
        elapsed_s = now_s - self._begun_s
        if elapsed_s < _WINDOW_S:
            return None
        self._shares.append(self._num_bytes / (elapsed_s * self._bytes_per_second))
        self._begun_s, self._num_bytes = now_s, 0
        return self._judge()

    def pause(self) -> None:
        """The caller says that it has no audio: begins anew."""
        self._begun_s, self._num_bytes = None, 0
        self._shares.clear()

    def _judge(self) -> str | None:
        if len(self._shares) < _NUM_WINDOWS:
            return None
        for factor in _FACTORS:
            if all(abs(share / factor - 1) <= _TOLERANCE for share in self._shares):
                self._is_over = True
                actual = round(factor * self._bytes_per_second)
                return (
                    f"audio arrives at {actual} bytes a second, but {self._description} has {self._bytes_per_second};"
                    " check sample_rate_hertz, audio_channel_count and encoding"
                )
        return None
