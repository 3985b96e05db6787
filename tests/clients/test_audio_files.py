import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clients.audio_files import (
    AudioFileError,
    Recording,
    encode,
    encode_alaw,
    encode_mulaw,
    interleave,
    mix_channels,
    pick_channels,
    read_recording,
    recording_info,
    resample,
    to_pcm16,
)
from clients.types import Encoding

ALL_CODES = np.arange(256, dtype=np.uint8)
NEGATIVE_ZERO_MULAW = 0x7F
"""The only code of the 512 whose value another code has too."""


def decode_with_libsndfile(codes: np.ndarray, subtype: str) -> np.ndarray:
    raw = io.BytesIO(codes.tobytes())
    samples, _ = soundfile.read(raw, dtype="int16", samplerate=8000, channels=1, subtype=subtype, format="RAW")
    return samples


MULAW_VALUES = decode_with_libsndfile(ALL_CODES, "ULAW").astype(np.int64)
ALAW_VALUES = decode_with_libsndfile(ALL_CODES, "ALAW").astype(np.int64)
CODERS = [
    pytest.param(encode_mulaw, MULAW_VALUES, id="mulaw"),
    pytest.param(encode_alaw, ALAW_VALUES, id="alaw"),
]
pcm16_arrays = arrays(np.int16, st.integers(1, 200), elements=st.integers(-32768, 32767))


@pytest.mark.parametrize(("encode_g711", "values"), CODERS)
def test_every_code_survives_decoding_and_encoding(encode_g711, values):
    again = encode_g711(values.astype(np.int16))
    different = [int(code) for code in ALL_CODES if again[code] != code]
    assert different == ([NEGATIVE_ZERO_MULAW] if encode_g711 is encode_mulaw else [])


@pytest.mark.parametrize(("encode_g711", "values"), CODERS)
@given(pcm=pcm16_arrays)
def test_no_sample_is_further_off_than_half_a_step_of_its_segment(encode_g711, values, pcm):
    error = np.abs(values[encode_g711(pcm)] - pcm.astype(np.int64))
    # A step is a 16th of its segment, and a segment starts at half its end: half a step is at most 1/32 of the value.
    assert np.all(error <= np.maximum(np.abs(pcm.astype(np.int64)) / 31 + 8, np.abs(pcm.astype(np.int64)) - 32_124))


@pytest.mark.parametrize(("encode_g711", "values"), CODERS)
@given(pcm=pcm16_arrays)
def test_louder_never_becomes_quieter(encode_g711, values, pcm):
    decoded = values[encode_g711(np.sort(pcm))]
    assert np.all(np.diff(decoded) >= 0)


def test_encoders_know_the_codes_of_the_standard():
    samples = np.array([0, -1, 32767, -32768, 1000, -1000], dtype=np.int16)
    assert encode_mulaw(samples).tolist() == [0xFF, 0x7F, 0x80, 0x00, 0xCE, 0x4E]
    assert encode_alaw(samples).tolist() == [0xD5, 0x55, 0xAA, 0x2A, 0xFA, 0x7A]


@pytest.mark.parametrize(("subtype", "encoding"), [("ULAW", Encoding.MULAW), ("ALAW", Encoding.ALAW)])
@pytest.mark.parametrize("num_channels", [1, 2])
def test_a_g711_file_gives_its_own_bytes_back(tmp_path, subtype, encoding, num_channels):
    path = tmp_path / "call.wav"
    codes = np.concatenate([ALL_CODES, ALL_CODES[::-1], ALL_CODES])  # negative zero too
    write_g711_wav(path, codes.tobytes(), subtype, num_channels)
    recording = read_recording(path)
    assert recording_info(path).encoding is encoding
    assert recording.num_channels == num_channels
    assert encode(recording, encoding) == codes.tobytes()


def write_g711_wav(path: Path, data: bytes, subtype: str, num_channels: int) -> None:
    """A WAV file with an odd chunk before its data, as recorders write them."""
    frames = len(data) // num_channels
    soundfile.write(path, np.zeros((frames, num_channels)), 8000, subtype=subtype)
    content = path.read_bytes()
    head, _, rest = content.partition(b"data")
    assert len(rest) >= 4 + len(data)
    note = b"note" + (3).to_bytes(4, "little") + b"abc\0"
    body = head[12:] + note + b"data" + len(data).to_bytes(4, "little") + data
    path.write_bytes(b"RIFF" + (4 + len(body)).to_bytes(4, "little") + b"WAVE" + body)


def test_a_changed_recording_no_longer_claims_the_file_bytes(tmp_path):
    path = tmp_path / "call.wav"
    write_g711_wav(path, ALL_CODES.tobytes() * 4, "ULAW", 2)
    recording = read_recording(path)
    assert len(encode(mix_channels(recording), Encoding.MULAW)) == 512
    assert len(encode(resample(recording, 16_000), Encoding.MULAW)) == 2048
    swapped = np.frombuffer(encode(pick_channels(recording, [2, 1]), Encoding.MULAW), np.uint8).reshape(-1, 2)
    same = np.frombuffer(encode(recording, Encoding.MULAW), np.uint8).reshape(-1, 2)
    differs = swapped[:, ::-1] != same
    assert set(same[differs].tolist()) <= {NEGATIVE_ZERO_MULAW}


@given(pcm=pcm16_arrays)
def test_16_bit_samples_come_through_exactly(pcm):
    samples = (pcm / 32768).astype(np.float32)
    assert np.array_equal(to_pcm16(samples), pcm)


def test_samples_beyond_full_scale_are_clipped_not_wrapped():
    assert to_pcm16(np.array([1.0, 1.5, -1.5], dtype=np.float32)).tolist() == [32767, 32767, -32768]


@pytest.mark.parametrize(
    ("suffix", "subtype", "tolerance"),
    [
        ("wav", "PCM_16", 1e-4),
        ("wav", "PCM_24", 1e-4),
        ("wav", "FLOAT", 1e-4),
        ("wav", "PCM_U8", 1e-2),
        ("flac", "PCM_16", 1e-4),
        ("ogg", "VORBIS", 0.1),
        ("mp3", "MPEG_LAYER_III", 0.1),
    ],
)
def test_formats_are_read_at_their_level(tmp_path, suffix, subtype, tolerance):
    path = tmp_path / f"tone.{suffix}"
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    soundfile.write(path, tone, 16_000, subtype=subtype)
    recording = read_recording(path)
    assert recording.sample_rate_hz == 16_000
    assert np.sqrt(np.mean(recording.samples**2)) == pytest.approx(0.5 / np.sqrt(2), abs=tolerance)
    assert len(encode(recording, Encoding.LINEAR16)) == 2 * recording.samples.size


def test_resampling_keeps_the_tone_and_the_length():
    tone = np.sin(2 * np.pi * 440 * np.arange(22_050) / 22_050).astype(np.float32)[:, None]
    recording = resample(Recording(samples=tone, sample_rate_hz=22_050), 8_000)
    spectrum = np.abs(np.fft.rfft(recording.samples[:, 0]))
    assert abs(recording.duration_s - 1.0) < 0.001
    assert np.argmax(spectrum) == pytest.approx(440, abs=1)


def ramp(start: float, num_samples: int) -> Recording:
    samples = (start + np.arange(num_samples, dtype=np.float32) / 1000)[:, None]
    return Recording(samples=samples, sample_rate_hz=8000)


def test_interleaving_pads_the_shorter_party_with_silence():
    both = interleave([ramp(0.1, 3), ramp(0.2, 2)])
    assert both.samples.tolist() == pytest.approx(np.array([[0.1, 0.2], [0.101, 0.201], [0.102, 0.0]], np.float32))
    assert pick_channels(both, [2]).samples[:, 0].tolist() == pytest.approx([0.2, 0.201, 0.0])
    assert mix_channels(both).samples[:, 0].tolist() == pytest.approx([0.15, 0.151, 0.051])


def test_what_cannot_be_done_names_value_and_remedy(tmp_path):
    both = interleave([ramp(0.1, 3), ramp(0.2, 2)])
    with pytest.raises(AudioFileError, match="channel 3 asked, the recording has 1 to 2"):
        pick_channels(both, [3])
    with pytest.raises(AudioFileError, match=r"\[8000, 16000\]; resample"):
        interleave([ramp(0.1, 3), resample(ramp(0.1, 3), 16_000)])
    text = tmp_path / "notes.wav"
    text.write_text("not audio")
    with pytest.raises(AudioFileError, match=r"notes\.wav.*use WAV"):
        read_recording(text)
