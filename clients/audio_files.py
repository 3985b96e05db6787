"""Recordings: from any file libsndfile reads to the bytes of a call."""

from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from clients.types import Encoding

PCM16_SCALE = 32_768
"""Full scale of 16-bit PCM."""
MULAW_BIAS = 132
"""G.711 mu-law on a 16-bit scale: added before the segment is looked for (33 on the standard's 14-bit scale)."""
MULAW_CLIP = 32_635
"""Largest magnitude that still fits its topmost segment once the bias is added."""
ALAW_TOGGLE = 0x55
"""G.711 A-law inverts every other bit on the line."""
SIGN_BIT = 0x80
RIFF_HEADER_BYTES = 12
CHUNK_HEADER_BYTES = 8
_FILE_ENCODINGS = {"ULAW": Encoding.MULAW, "ALAW": Encoding.ALAW}


class AudioFileError(Exception):
    """A recording that cannot be read, or not be used as asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingInfo:
    """What a file's header says."""

    sample_rate_hz: int
    num_channels: int
    num_samples: int
    """Of each channel."""
    encoding: Encoding
    """What the file itself holds: MULAW, ALAW, or LINEAR16 for everything else."""

    @property
    def duration_s(self) -> float:
        """Length of the recording."""
        return self.num_samples / self.sample_rate_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Decoded audio."""

    samples: NDArray[np.float32] = field(repr=False, compare=False)
    """Shape `(num_samples, num_channels)`, values in [-1, 1]."""
    sample_rate_hz: int
    g711: bytes = field(default=b"", repr=False)
    """The file's own G.711 bytes, while the samples are still exactly theirs; empty otherwise."""
    g711_encoding: Encoding | None = None

    @property
    def num_channels(self) -> int:
        """Channels side by side."""
        return int(self.samples.shape[1])

    @property
    def duration_s(self) -> float:
        """Length of the recording."""
        return len(self.samples) / self.sample_rate_hz


def recording_info(path: Path) -> RecordingInfo:
    """Reads the header alone.

    Raises:
        AudioFileError: The file is missing or no recording.
    """
    try:
        info = soundfile.info(str(path))
    except (soundfile.LibsndfileError, OSError) as error:
        raise AudioFileError(f"{path}: {error}; use WAV, FLAC, OGG or MP3") from error
    return RecordingInfo(
        sample_rate_hz=info.samplerate,
        num_channels=info.channels,
        num_samples=info.frames,
        encoding=_FILE_ENCODINGS.get(info.subtype, Encoding.LINEAR16),
    )


def read_recording(path: Path) -> Recording:
    """Decodes a file: WAV (PCM, mu-law, A-law, float), FLAC, OGG or MP3.

    Raises:
        AudioFileError: The file is missing or no recording.
    """
    info = recording_info(path)
    samples, sample_rate_hz = soundfile.read(str(path), dtype="float32", always_2d=True)
    recording = Recording(samples=samples, sample_rate_hz=sample_rate_hz)
    if info.encoding is Encoding.LINEAR16:
        return recording
    g711 = _riff_data(path.read_bytes())[: samples.size]
    if len(g711) != samples.size:  # not a plain WAV file: its samples are re-encoded when they are sent
        return recording
    return replace(recording, g711=g711, g711_encoding=info.encoding)


def _riff_data(content: bytes) -> bytes:
    """The `data` chunk of a WAV file; empty when it is something else."""
    if content[:4] != b"RIFF":
        return b""
    position = RIFF_HEADER_BYTES
    while position + CHUNK_HEADER_BYTES <= len(content):
        size = int.from_bytes(content[position + 4 : position + CHUNK_HEADER_BYTES], "little")
        start = position + CHUNK_HEADER_BYTES
        if content[position : position + 4] == b"data":
            return content[start : start + size]
        position = start + size + size % 2  # chunks are padded to an even length
    return b""


def resample(recording: Recording, sample_rate_hz: int) -> Recording:
    """The same recording at another rate; the recording itself when it has that rate."""
    if sample_rate_hz == recording.sample_rate_hz:
        return recording
    samples = soxr.resample(recording.samples, recording.sample_rate_hz, sample_rate_hz)
    return Recording(samples=samples.astype(np.float32), sample_rate_hz=sample_rate_hz)


def pick_channels(recording: Recording, channel_tags: list[int]) -> Recording:
    """The channels with these tags (1..N), in this order.

    Raises:
        AudioFileError: There is no such channel.
    """
    for tag in channel_tags:
        if not 1 <= tag <= recording.num_channels:
            raise AudioFileError(f"channel {tag} asked, the recording has 1 to {recording.num_channels}")
    if channel_tags == list(range(1, recording.num_channels + 1)):
        return recording
    samples = recording.samples[:, [tag - 1 for tag in channel_tags]]
    return Recording(samples=samples, sample_rate_hz=recording.sample_rate_hz)


def mix_channels(recording: Recording) -> Recording:
    """One channel: the mean of all."""
    if recording.num_channels == 1:
        return recording
    samples = recording.samples.mean(axis=1, keepdims=True, dtype=np.float32)
    return Recording(samples=samples, sample_rate_hz=recording.sample_rate_hz)


def interleave(recordings: list[Recording]) -> Recording:
    """Recordings of the same call side by side; shorter ones are followed by silence.

    Raises:
        AudioFileError: They differ in their rates.
    """
    rates = sorted({recording.sample_rate_hz for recording in recordings})
    if len(rates) != 1:
        raise AudioFileError(f"recordings of one call have rates {rates}; resample them to one rate first")
    num_samples = max(len(recording.samples) for recording in recordings)
    padded = [np.pad(r.samples, ((0, num_samples - len(r.samples)), (0, 0))) for r in recordings]
    return Recording(samples=np.concatenate(padded, axis=1), sample_rate_hz=rates[0])


def encode(recording: Recording, encoding: Encoding) -> bytes:
    """The recording's samples as bytes, channels interleaved. A file's own G.711 bytes stay as they are."""
    if recording.g711_encoding is encoding:
        return recording.g711
    pcm16 = to_pcm16(recording.samples)
    if encoding is Encoding.MULAW:
        return encode_mulaw(pcm16).tobytes()
    if encoding is Encoding.ALAW:
        return encode_alaw(pcm16).tobytes()
    return pcm16.astype("<i2").tobytes()


def to_pcm16(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """Floats in [-1, 1] to 16-bit PCM of the same shape, rounded and clipped; exact for what came from 16 bits."""
    scaled = np.rint(samples * PCM16_SCALE)
    return np.clip(scaled, -PCM16_SCALE, PCM16_SCALE - 1).astype(np.int16)


def encode_mulaw(pcm16: NDArray[np.int16]) -> NDArray[np.uint8]:
    """ITU-T G.711 mu-law codes of 16-bit samples, same shape."""
    codes: NDArray[np.uint8] = _mulaw_table()[pcm16.view(np.uint16)]
    return codes


def encode_alaw(pcm16: NDArray[np.int16]) -> NDArray[np.uint8]:
    """ITU-T G.711 A-law codes of 16-bit samples, same shape."""
    codes: NDArray[np.uint8] = _alaw_table()[pcm16.view(np.uint16)]
    return codes


def _all_pcm16() -> NDArray[np.int32]:
    """Every 16-bit sample, in the order of its bits as an unsigned number."""
    bits = np.arange(2 * PCM16_SCALE, dtype=np.uint16)
    values: NDArray[np.int32] = bits.view(np.int16).astype(np.int32)
    return values


@cache
def _mulaw_table() -> NDArray[np.uint8]:
    pcm = _all_pcm16()
    magnitude = np.minimum(np.abs(pcm), MULAW_CLIP) + MULAW_BIAS
    segment = np.floor(np.log2(magnitude)).astype(np.int32) - 7
    mantissa = (magnitude >> (segment + 3)) & 0x0F
    sign = np.where(pcm < 0, SIGN_BIT, 0)
    code = sign | (segment << 4) | mantissa
    table: NDArray[np.uint8] = (~code & 0xFF).astype(np.uint8)
    return table


@cache
def _alaw_table() -> NDArray[np.uint8]:
    pcm = _all_pcm16()
    magnitude = np.where(pcm < 0, ~pcm, pcm) >> 4  # 12 bits; one's complement, as the standard's negative codes
    segment = np.maximum(np.floor(np.log2(np.maximum(magnitude, 1))).astype(np.int32) - 4, 0)
    mantissa = (magnitude >> np.maximum(segment, 1)) & 0x0F
    # G.711 numbers the two linear segments 0 and 1 with the same step; from 16 on the mantissa's top bit is implied.
    code = np.where(magnitude < 32, magnitude, ((segment + 1) << 4) | mantissa)
    sign = np.where(pcm < 0, 0, SIGN_BIT)
    return ((sign | code) ^ ALAW_TOGGLE).astype(np.uint8)
