import io

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from pipeline.audio.codecs import BYTES_PER_SAMPLE, SILENCE_BYTES, decode, to_int16
from pipeline.types import AudioEncoding


@pytest.mark.parametrize(("encoding", "subtype"), [(AudioEncoding.MULAW, "ULAW"), (AudioEncoding.ALAW, "ALAW")])
def test_g711_equals_libsndfile_for_all_codes(encoding, subtype):
    codes = bytes(range(256))
    expected = soundfile.read(
        io.BytesIO(codes), format="RAW", subtype=subtype, channels=1, samplerate=8_000, dtype="int16"
    )[0]
    assert np.array_equal(decode(codes, encoding, 1)[0] * 32768, expected)


def test_linear16_is_little_endian_and_full_scale():
    assert decode(b"\x00\x80\xff\x7f\x01\x00", AudioEncoding.LINEAR16, 1).tolist() == [[-1.0, 32767 / 32768, 1 / 32768]]


@given(st.binary(max_size=400), st.sampled_from(AudioEncoding), st.sampled_from([1, 2]))
def test_channels_are_separated(data, encoding, num_channels):
    size = BYTES_PER_SAMPLE[encoding]
    data = data[: len(data) // (size * num_channels) * size * num_channels]
    together = decode(data, encoding, num_channels)
    for channel in range(num_channels):
        alone = b"".join(data[i : i + size] for i in range(channel * size, len(data), size * num_channels))
        assert np.array_equal(together[channel], decode(alone, encoding, 1)[0])


@pytest.mark.parametrize("encoding", AudioEncoding)
def test_silence_is_inaudible(encoding):
    assert abs(decode(SILENCE_BYTES[encoding], encoding, 1)[0, 0]) <= 8 / 32768


@given(st.lists(st.integers(-32768, 32767), max_size=50))
def test_int16_round_trip(values):
    data = np.array(values, dtype="<i2").tobytes()
    assert to_int16(decode(data, AudioEncoding.LINEAR16, 1)[0]).tolist() == values
