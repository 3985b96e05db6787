"""Bytes of a declared encoding to float samples. Pure functions; the carry of split samples is in `framing`.

G.711 is decoded by table (ITU-T G.711 tables 1a-2b; bit-exact with the reference expansion to 16 bits), since the
standard library's `audioop` is gone from Python 3.13.
"""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from pipeline.types import AudioEncoding, Samples

_INT16_SCALE = np.float32(1 / 32768)
_INT16_MIN, _INT16_MAX = np.float32(-32768), np.float32(32767)
_MULAW_BIAS = 0x84

BYTES_PER_SAMPLE = {AudioEncoding.LINEAR16: 2, AudioEncoding.MULAW: 1, AudioEncoding.ALAW: 1}
SILENCE_BYTES = {AudioEncoding.LINEAR16: b"\x00\x00", AudioEncoding.MULAW: b"\xff", AudioEncoding.ALAW: b"\xd5"}
"""One sample of silence; G.711 has no exact zero in A-law, 0xD5 is its smallest step."""


def _mulaw_table() -> NDArray[np.int16]:
    """Expands all 256 mu-law codes to 16-bit linear."""
    code = ~np.arange(256, dtype=np.uint8)
    exponent = (code >> 4) & 0x07
    mantissa = (code & 0x0F).astype(np.int32)
    magnitude = (((mantissa << 3) + _MULAW_BIAS) << exponent) - _MULAW_BIAS
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def _alaw_table() -> NDArray[np.int16]:
    """Expands all 256 A-law codes to 16-bit linear."""
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent = ((code >> 4) & 0x07).astype(np.int32)
    mantissa = (code & 0x0F).astype(np.int32) << 4
    magnitude = np.where(exponent == 0, mantissa + 8, (mantissa + 0x108) << np.maximum(exponent - 1, 0))
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)


_TABLES = {AudioEncoding.MULAW: _mulaw_table(), AudioEncoding.ALAW: _alaw_table()}
_FLOAT_TABLES = {encoding: table.astype(np.float32) * _INT16_SCALE for encoding, table in _TABLES.items()}


def decode(data: bytes, encoding: AudioEncoding, num_channels: int) -> Samples:
    """Decodes interleaved audio.

    Args:
        data: a whole number of samples of all channels.
        encoding: how samples lie in bytes.
        num_channels: how many channels are interleaved.

    Returns:
        float32, shape `(num_channels, num_samples)`, values in [-1, 1).
    """
    if encoding is AudioEncoding.LINEAR16:
        flat = np.frombuffer(data, dtype="<i2").astype(np.float32) * _INT16_SCALE
    else:
        flat = _FLOAT_TABLES[encoding][np.frombuffer(data, dtype=np.uint8)]
    return np.ascontiguousarray(flat.reshape(-1, num_channels).T)


class ByteLayout(Enum):
    """Ways in which bytes may hold samples, also those that a caller cannot declare."""

    LINEAR16 = "LINEAR16"
    MULAW = "MULAW"
    ALAW = "ALAW"
    LINEAR16_BIG_ENDIAN = "LINEAR16_BIG_ENDIAN"
    UNSIGNED8 = "UNSIGNED8"


LAYOUTS = {encoding: ByteLayout(encoding.value) for encoding in AudioEncoding}
"""What a declared encoding should look like."""
_UNSIGNED8_TABLE = (np.arange(256, dtype=np.float32) - 128) / 128


def read_as(data: bytes, layout: ByteLayout, num_channels: int) -> Samples:
    """Reads interleaved audio in any layout; what does not fill a sample of all channels is left out.

    Returns:
        float32, shape `(num_channels, num_samples)`, values in [-1, 1).
    """
    if layout in (ByteLayout.LINEAR16, ByteLayout.LINEAR16_BIG_ENDIAN):
        whole = len(data) // (2 * num_channels) * (2 * num_channels)
        kind = "<i2" if layout is ByteLayout.LINEAR16 else ">i2"
        flat = np.frombuffer(data[:whole], dtype=kind).astype(np.float32) * _INT16_SCALE
    else:
        codes = np.frombuffer(data[: len(data) // num_channels * num_channels], dtype=np.uint8)
        table = _UNSIGNED8_TABLE if layout is ByteLayout.UNSIGNED8 else _FLOAT_TABLES[AudioEncoding(layout.value)]
        flat = table[codes]
    return np.ascontiguousarray(flat.reshape(-1, num_channels).T)


def to_int16(samples: Samples) -> NDArray[np.int16]:
    """Rounds float samples to 16 bits, clipping."""
    scaled = samples * np.float32(32768)
    np.rint(scaled, out=scaled)
    np.minimum(scaled, _INT16_MAX, out=scaled)
    np.maximum(scaled, _INT16_MIN, out=scaled)
    return scaled.astype(np.int16)
