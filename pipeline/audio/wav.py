"""Finds and skips a WAV header at the start of a stream, however it is chunked.

Many clients send a file as it is, header and all (RIFF, Microsoft/IBM 1991): 44 bytes of clicks in the
transcript's audio, and a format that may contradict what was declared.
"""

import struct

from pipeline.audio.codecs import BYTES_PER_SAMPLE
from pipeline.errors import InvalidAudioError
from pipeline.types import AudioEncoding, AudioFormat

_RIFF_HEADER_BYTES = 12
_CHUNK_HEADER_BYTES = 8
_MAX_HEADER_BYTES = 65_536
_FORMAT_TAGS = {1: AudioEncoding.LINEAR16, 6: AudioEncoding.ALAW, 7: AudioEncoding.MULAW}
_EXTENSIBLE_TAG = 0xFFFE
_OPEN_ENDED_BYTES = 0x7FFF_0000
"""Writers that stream do not know the size and put 0 or something near 2 or 4 GiB."""
_TRAILING_CHUNK_IDS = (b"LIST", b"id3 ", b"ID3 ", b"bext", b"cue ", b"fact", b"smpl", b"PEAK", b"JUNK", b"iXML")


class WavHeaderSkipper:
    """Passes audio bytes through, without a WAV header in front and metadata chunks behind."""

    def __init__(self, audio_format: AudioFormat) -> None:
        self._format = audio_format
        self._pending = bytearray()
        self._settled = False
        self._data_bytes_left: int | None = None
        self._trailer = False
        self.header_found = False

    def receive(self, data: bytes) -> bytes:
        """Returns the audio in these bytes; holds back what may still be a header.

        Raises:
            InvalidAudioError: the header contradicts the declared format.
        """
        if not self._settled:
            self._pending += data
            data = self._settle(ended=False)
        return self._without_trailer(data)

    def receive_end(self) -> bytes:
        """Returns what was held back."""
        if not self._settled:
            return self._settle(ended=True)
        rest = b"" if self._trailer else bytes(self._pending)
        self._pending.clear()
        return rest

    def _settle(self, *, ended: bool) -> bytes:
        head = bytes(self._pending)
        audio: bytes | None = head
        if not ended and self._may_be_wav(head):
            audio = self._skip_header(head)
        if audio is None:
            return b""
        self._settled = True
        self._pending.clear()
        return audio

    @staticmethod
    def _may_be_wav(head: bytes) -> bool:
        return b"RIFF".startswith(head[:4]) and b"WAVE".startswith(head[8:_RIFF_HEADER_BYTES])

    def _skip_header(self, head: bytes) -> bytes | None:
        """Returns what follows the header, or None while it is incomplete."""
        position = _RIFF_HEADER_BYTES
        while position + _CHUNK_HEADER_BYTES <= len(head):
            chunk_id, size = struct.unpack_from("<4sI", head, position)
            body = position + _CHUNK_HEADER_BYTES
            if chunk_id == b"data":
                self.header_found = True
                self._data_bytes_left = size if 0 < size < _OPEN_ENDED_BYTES else None
                return head[body:]
            if chunk_id == b"fmt " and len(head) >= body + size:
                self._check_format(head[body : body + size])
            position = body + size + (size & 1)
        if max(position, len(head)) > _MAX_HEADER_BYTES:
            raise InvalidAudioError(
                f"audio_content: a WAV header without data in its first {_MAX_HEADER_BYTES} bytes; "
                "send bare samples or a plain WAV file"
            )
        return None

    def _check_format(self, fmt: bytes) -> None:
        if len(fmt) < 16:
            raise InvalidAudioError(f"audio_content: WAV format chunk of {len(fmt)} bytes; at least 16 are needed")
        tag, num_channels, rate_hz, _, _, bits = struct.unpack_from("<HHIIHH", fmt)
        if tag == _EXTENSIBLE_TAG and len(fmt) >= 26:
            (tag,) = struct.unpack_from("<H", fmt, 24)
        encoding = _FORMAT_TAGS.get(tag)
        if encoding is not None and bits != 8 * BYTES_PER_SAMPLE[encoding]:
            encoding = None
        found = (encoding, rate_hz, num_channels)
        declared = (self._format.encoding, self._format.sample_rate_hz, self._format.num_channels)
        if found != declared:
            name = encoding.value if encoding else f"format {tag} with {bits} bits"
            raise InvalidAudioError(
                f"audio_content: the WAV header says {name}, {rate_hz} Hz, {num_channels} channel(s), the config says "
                f"{declared[0].value}, {declared[1]} Hz, {declared[2]} channel(s); declare what the audio is"
            )

    def _without_trailer(self, data: bytes) -> bytes:
        if self._data_bytes_left is None or not data:
            return b"" if self._trailer else data
        audio, behind = data[: self._data_bytes_left], data[self._data_bytes_left :]
        self._data_bytes_left -= len(audio)
        if self._data_bytes_left > 0:
            return audio
        return audio + self._after_data(behind)

    def _after_data(self, behind: bytes) -> bytes:
        """Metadata behind the data is dropped; a header with a size too small must not cost audio."""
        self._pending += behind
        if len(self._pending) < 4:
            return b""
        rest = bytes(self._pending)
        self._trailer = rest.startswith(_TRAILING_CHUNK_IDS)
        self._data_bytes_left = None
        self._pending.clear()
        return b"" if self._trailer else rest
