"""Bytes in chunks of any size to exact 10 ms frames.

Whatever does not fill a frame is carried over, also half a sample, so that everything behind this point depends
on the audio alone and never on how it was cut into messages.
"""

from collections import deque
from dataclasses import dataclass

from pipeline.audio.codecs import BYTES_PER_SAMPLE, SILENCE_BYTES, decode
from pipeline.audio.wav import WavHeaderSkipper
from pipeline.config import HintsUpdate
from pipeline.types import FRAME_MS, AudioFormat, Samples

_MS_PER_S = 1000


@dataclass(frozen=True, slots=True)
class Flush:
    """Mark in the stream: finalize what came before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTime:
    """Mark in the stream: this much of the call has no audio at all."""

    num_frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingAudio:
    """Mark in the stream: from here on there is no audio for this long; silence and skipped time follow."""

    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PressedKey:
    """Mark in the stream: a key was seen pressed here."""

    digit: str
    channel_tag: int


@dataclass(frozen=True, slots=True)
class HintsChange:
    """Mark in the stream: what begins from here on is decoded with other hints."""

    update: HintsUpdate


Mark = Flush | SkippedTime | MissingAudio | PressedKey | HintsChange


class FrameAssembler:
    """The input queue of a call: bytes, gaps and flushes in order; frames and marks out, one at a time."""

    def __init__(self, audio_format: AudioFormat, *, max_filled_gap_ms: int) -> None:
        """Gaps up to `max_filled_gap_ms` become silence; longer ones are filled so far and then skipped."""
        self._format = audio_format
        self._sample_bytes = BYTES_PER_SAMPLE[audio_format.encoding] * audio_format.num_channels
        self._silence = SILENCE_BYTES[audio_format.encoding] * audio_format.num_channels
        self._frame_bytes = audio_format.sample_rate_hz * FRAME_MS // _MS_PER_S * self._sample_bytes
        self._max_filled_gap_ms = max_filled_gap_ms
        self._header = WavHeaderSkipper(audio_format)
        self._audio = bytearray()
        self._taken_bytes = 0
        self.newest_frame = b""
        """The bytes of the frame taken last."""
        self._marks: deque[tuple[int, Mark]] = deque()
        """Marks with their positions in the stream, counted in bytes."""

    @property
    def header_found(self) -> bool:
        """Whether the stream began with a WAV header."""
        return self._header.header_found

    @property
    def received_ms(self) -> int:
        """Audio received, filled gaps included, skipped time left out."""
        rate_bytes_s = self._format.sample_rate_hz * self._sample_bytes
        return self._received_bytes * _MS_PER_S // rate_bytes_s

    def receive_audio(self, data: bytes) -> None:
        """Appends audio.

        Raises:
            InvalidAudioError: a WAV header contradicts the declared format.
        """
        self._audio += self._header.receive(data)

    def receive_gap(self, duration_ms: int) -> None:
        """Appends time without audio. A sample that the gap splits is dropped."""
        self._close_tail()
        self._marks.append((self._received_bytes, MissingAudio(duration_ms=duration_ms)))
        filled_ms = min(duration_ms, self._max_filled_gap_ms)
        self._audio += self._silence * (filled_ms * self._format.sample_rate_hz // _MS_PER_S)
        if skipped_frames := (duration_ms - filled_ms) // FRAME_MS:
            self._fill_frame()
            self._marks.append((self._received_bytes, SkippedTime(num_frames=skipped_frames)))

    def receive_flush(self) -> None:
        """Appends a flush mark. It takes effect at the last whole frame before it."""
        self._marks.append((self._received_bytes, Flush()))

    def receive_key(self, digit: str, channel_tag: int) -> None:
        """Appends a key pressed. It counts from the last whole frame before it."""
        self._marks.append((self._received_bytes, PressedKey(digit=digit, channel_tag=channel_tag)))

    def receive_update(self, update: HintsUpdate) -> None:
        """Appends a change of hints. It takes effect at the last whole frame before it."""
        self._marks.append((self._received_bytes, HintsChange(update)))

    def receive_end(self) -> None:
        """Ends the stream: half a sample is dropped, the last frame is filled up with silence."""
        self._close_tail()
        self._fill_frame()

    def next_frame(self) -> Samples | Mark | None:
        """Takes the next frame, shape `(num_channels, frame_samples)`, or mark; None when there is none yet."""
        if self._marks and self._marks[0][0] < self._taken_bytes + self._frame_bytes:
            return self._marks.popleft()[1]
        if len(self._audio) < self._frame_bytes:
            return None
        frame = bytes(self._audio[: self._frame_bytes])
        del self._audio[: self._frame_bytes]
        self._taken_bytes += self._frame_bytes
        self.newest_frame = frame
        return decode(frame, self._format.encoding, self._format.num_channels)

    @property
    def _received_bytes(self) -> int:
        return self._taken_bytes + len(self._audio)

    def _close_tail(self) -> None:
        self._audio += self._header.receive_end()
        if split_bytes := self._received_bytes % self._sample_bytes:
            del self._audio[-split_bytes:]

    def _fill_frame(self) -> None:
        missing_bytes = -self._received_bytes % self._frame_bytes
        self._audio += self._silence * (missing_bytes // self._sample_bytes)
