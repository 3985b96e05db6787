"""Recognises text sent as audio: JSON or base64 that someone forgot to decode.

Speech swings around zero, so that in every encoding about half of its bytes lie outside printable ASCII. G.711 keeps
to one sign for half a period of a low hum and for whole idle stretches: it is looked at for longer, and few different
bytes are never taken for text.
"""

from pipeline.errors import InvalidAudioError
from pipeline.types import AudioEncoding

MIN_TEXT_BYTES = 64
_LOOKED_AT_BYTES = {AudioEncoding.LINEAR16: MIN_TEXT_BYTES, AudioEncoding.MULAW: 256, AudioEncoding.ALAW: 256}
_MIN_DIFFERENT_BYTES = 10
_TEXT_BYTES = bytes(range(0x20, 0x7F)) + b"\t\n\r"


class TextGuard:
    """Looks at the first bytes of a call; how they were cut into chunks does not matter."""

    def __init__(self, encoding: AudioEncoding) -> None:
        self._encoding = encoding
        self._head: bytes | None = b""

    def feed(self, data: bytes) -> None:
        """Takes audio as it comes. Raises InvalidAudioError when it is text."""
        if self._head is None:
            return
        needed = _LOOKED_AT_BYTES[self._encoding]
        self._head += data[: needed - len(self._head)]
        if not self._is_text(self._head):
            self._head = None
        elif len(self._head) >= needed:
            self._complain()

    def end(self) -> None:
        """The audio ended. Raises InvalidAudioError when all of it was text."""
        if self._head is not None and len(self._head) >= MIN_TEXT_BYTES:
            self._complain()

    def _complain(self) -> None:
        head = self._head or b""
        if len(set(head)) < _MIN_DIFFERENT_BYTES:
            self._head = None
            return
        raise InvalidAudioError(
            f"audio_content: the first {len(head)} bytes are text, not {self._encoding.value}; "
            "send the raw bytes (in JSON, as grpcurl takes it, base64 of them once)"
        )

    @staticmethod
    def _is_text(data: bytes) -> bool:
        return not data.translate(None, delete=_TEXT_BYTES)
