"""When which part of a call's audio arrived: what latencies are measured against."""

from bisect import bisect_left
from collections import deque

from pipeline.types import AudioEncoding, AudioFormat

_BYTES_PER_SAMPLE = {AudioEncoding.LINEAR16: 2, AudioEncoding.MULAW: 1, AudioEncoding.ALAW: 1}
_RESOLUTION_MS = 20
_MAX_ENTRIES = 4096
_MS_PER_S = 1000


def bytes_per_second(audio_format: AudioFormat) -> int:
    """All channels together."""
    width = _BYTES_PER_SAMPLE[audio_format.encoding] * audio_format.num_channels
    return audio_format.sample_rate_hz * width


def describe(audio_format: AudioFormat) -> str:
    """For people."""
    channels = "1 channel" if audio_format.num_channels == 1 else f"{audio_format.num_channels} channels"
    return f"{audio_format.encoding.value} at {audio_format.sample_rate_hz} Hz in {channels}"


class ArrivalLog:
    """Call clock to wall clock, for the last minute at least; a WAV header counts as audio."""

    def __init__(self, audio_format: AudioFormat, start_offset_ms: int, now_s: float) -> None:
        self._bytes_per_second = bytes_per_second(audio_format)
        self._start_offset_ms = start_offset_ms
        self._made_s = now_s
        self._first_audio_s: float | None = None
        self._num_bytes = 0
        self._gap_ms = 0
        self._entries: deque[tuple[int, float]] = deque(maxlen=_MAX_ENTRIES)
        self.last_audio_s = now_s
        """When audio last arrived."""

    @property
    def offset_ms(self) -> int:
        """Call clock up to which audio has arrived."""
        audio_ms = self._num_bytes * _MS_PER_S // self._bytes_per_second
        return self._start_offset_ms + audio_ms + self._gap_ms

    def add_audio(self, num_bytes: int, now_s: float) -> None:
        """Audio arrived."""
        self._num_bytes += num_bytes
        self._first_audio_s = self._first_audio_s or now_s
        self.last_audio_s = now_s
        self._note(now_s)

    def add_gap(self, duration_ms: int, now_s: float) -> None:
        """The call clock moved on without audio."""
        self._gap_ms += duration_ms
        self._note(now_s)

    def arrived_s(self, offset_ms: int) -> float:
        """When the audio at this offset arrived; the nearest known time when that is forgotten or still to come."""
        index = bisect_left(self._entries, offset_ms, key=lambda entry: entry[0])
        if not self._entries:
            return self._made_s
        return self._entries[min(index, len(self._entries) - 1)][1]

    def lag_ms(self, now_s: float) -> int:
        """How far the call clock is behind a caller that sends in real time from its first audio on."""
        if self._first_audio_s is None:
            return 0
        return round((now_s - self._first_audio_s) * _MS_PER_S) - (self.offset_ms - self._start_offset_ms)

    def _note(self, now_s: float) -> None:
        if not self._entries or self.offset_ms >= self._entries[-1][0] + _RESOLUTION_MS:
            self._entries.append((self.offset_ms, now_s))
