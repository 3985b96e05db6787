import io

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from pipeline.audio.framing import Flush, FrameAssembler, Mark, MissingAudio, PressedKey, SkippedTime
from pipeline.config import SUPPORTED_SAMPLE_RATES_HZ
from pipeline.errors import InvalidAudioError
from pipeline.types import AudioEncoding, AudioFormat
from tests.support.audio import split

LINEAR16_8K = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=8_000)
STEREO_44K = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=44_100, num_channels=2)
MULAW_8K = AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=8_000)
FORMATS = [LINEAR16_8K, STEREO_44K, MULAW_8K]


def assembler(audio_format=LINEAR16_8K, max_filled_gap_ms=1_000):
    return FrameAssembler(audio_format, max_filled_gap_ms=max_filled_gap_ms)


def take_all(frames):
    taken = []
    while (item := frames.next_frame()) is not None:
        taken.append(item if isinstance(item, Mark) else item.tobytes())
    return taken


def wav(samples, rate_hz, subtype):
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, subtype=subtype, format="WAV")
    return file.getvalue()


@given(data=st.binary(max_size=6_000), sizes=st.lists(st.integers(1, 999), min_size=1), fmt=st.sampled_from(FORMATS))
def test_frames_do_not_depend_on_chunks(data, sizes, fmt):
    whole, pieces = assembler(fmt), assembler(fmt)
    whole.receive_audio(data)
    whole.receive_end()
    taken = []
    for chunk in split(data, sizes):
        pieces.receive_audio(chunk)
        taken += take_all(pieces)
    pieces.receive_end()
    assert taken + take_all(pieces) == take_all(whole)


@pytest.mark.parametrize("rate_hz", SUPPORTED_SAMPLE_RATES_HZ)
def test_every_rate_has_whole_frames(rate_hz):
    frames = assembler(AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=rate_hz))
    frames.receive_audio(bytes(2 * rate_hz))
    assert len(take_all(frames)) == 100
    assert frames.received_ms == 1_000


@pytest.mark.parametrize("size", [1, 7, 44, 10_000])
@pytest.mark.parametrize(("subtype", "fmt"), [("PCM_16", LINEAR16_8K), ("ULAW", MULAW_8K), ("PCM_16", STEREO_44K)])
def test_wav_header_and_trailing_metadata_are_skipped(size, subtype, fmt):
    samples = np.sin(np.arange(fmt.sample_rate_hz * fmt.num_channels // 10)).reshape(-1, fmt.num_channels) / 2
    file = wav(samples, fmt.sample_rate_hz, subtype)
    data = file[file.index(b"data") + 8 :]
    bare, with_header = assembler(fmt), assembler(fmt)
    bare.receive_audio(data)
    for chunk in split(file + b"LIST\x04\x00\x00\x00abcd", [size]):
        with_header.receive_audio(chunk)
    bare.receive_end()
    with_header.receive_end()
    assert with_header.header_found
    assert take_all(with_header) == take_all(bare)


def test_header_with_a_wrong_size_costs_no_audio():
    file = bytearray(wav(np.zeros(80), 8_000, "PCM_16"))
    file += b"\x01\x02" * 800
    frames = assembler()
    frames.receive_audio(bytes(file))
    assert len(take_all(frames)) == 11


def test_header_of_a_streaming_writer_is_open_ended():
    file = bytearray(wav(np.zeros(800), 8_000, "PCM_16"))
    position = file.index(b"data") + 4
    file[position : position + 4] = b"\xff\xff\xff\xff"
    frames = assembler()
    frames.receive_audio(bytes(file) + b"LIST" * 40)
    assert len(take_all(frames)) == 11


@pytest.mark.parametrize(
    ("rate_hz", "subtype", "named"), [(16_000, "PCM_16", "16000 Hz"), (8_000, "ULAW", "MULAW"), (8_000, "PCM_24", "24")]
)
def test_header_that_contradicts_the_config_is_an_error(rate_hz, subtype, named):
    frames = assembler()
    with pytest.raises(InvalidAudioError, match=named):
        frames.receive_audio(wav(np.zeros(80), rate_hz, subtype))


def test_endless_header_is_an_error():
    frames = assembler()
    with pytest.raises(InvalidAudioError, match="65536"):
        frames.receive_audio(b"RIFF\0\0\0\0WAVE" + b"JUNK\x10\0\0\0" + bytes(70_000))


@pytest.mark.parametrize("start", [b"RIFF", b"RI", b"RIFFxxxxWAVX" + bytes(200)])
def test_audio_that_only_begins_like_a_header_is_audio(start):
    frames = assembler()
    frames.receive_audio(start)
    frames.receive_end()
    assert take_all(frames)
    assert not frames.header_found


def test_flush_takes_effect_between_frames():
    frames = assembler()
    frames.receive_audio(bytes(160 + 50))
    frames.receive_flush()
    frames.receive_audio(bytes(110))
    assert [type(item) for item in take_all(frames)] == [bytes, Flush, bytes]


def test_short_gap_becomes_silence_and_splits_no_sample():
    frames = assembler()
    frames.receive_audio(b"\x11\x22" * 40 + b"\x33")
    frames.receive_gap(15)
    frames.receive_audio(b"\x11\x22" * 80)
    missing, *taken = take_all(frames)
    assert missing == MissingAudio(duration_ms=15)
    assert len(taken) == 3
    assert np.count_nonzero(np.frombuffer(taken[0], np.float32)) == 40
    assert not np.frombuffer(taken[1], np.float32).any()


def test_long_gap_is_filled_then_skipped():
    frames = assembler(max_filled_gap_ms=100)
    frames.receive_audio(bytes(50))
    frames.receive_gap(60_000)
    frames.receive_audio(bytes(160))
    taken = take_all(frames)
    skips = [item for item in taken if isinstance(item, SkippedTime)]
    assert skips == [SkippedTime(num_frames=5_990)]
    assert taken.index(MissingAudio(duration_ms=60_000)) == 0
    assert taken.index(skips[0]) == 12
    assert len(taken) == 14


def test_a_key_stands_before_the_frame_it_falls_into():
    frames = assembler()
    frames.receive_audio(bytes(160 + 50))
    frames.receive_key("5", 1)
    frames.receive_audio(bytes(110))
    assert take_all(frames)[1] == PressedKey(digit="5", channel_tag=1)
