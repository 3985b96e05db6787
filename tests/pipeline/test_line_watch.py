"""Wrong encodings, wrong numbers of channels and poor lines are told once; right ones never."""

import io
from collections import Counter
from time import process_time

import numpy as np
import pytest
import soundfile

from pipeline.events import NoticeCode
from pipeline.line_watch import LineWatch
from pipeline.types import FRAME_MS, AudioEncoding, AudioFormat
from tests.engines.support import clip
from tests.support.audio import load, manifest, require_data

RATE_HZ = 8_000
BYTES = {AudioEncoding.LINEAR16: 2, AudioEncoding.MULAW: 1, AudioEncoding.ALAW: 1}


def g711(samples, subtype):
    file = io.BytesIO()
    soundfile.write(file, samples, RATE_HZ, format="RAW", subtype=subtype)
    return file.getvalue()


def int16(samples):
    return np.clip(np.rint(samples * 32_768), -32_768, 32_767)


SENT = {
    "LINEAR16": lambda x: int16(x).astype("<i2").tobytes(),
    "big-endian": lambda x: int16(x).astype(">i2").tobytes(),
    "MULAW": lambda x: g711(x, "ULAW"),
    "ALAW": lambda x: g711(x, "ALAW"),
    "unsigned 8-bit": lambda x: np.clip(np.rint(x * 128) + 128, 0, 255).astype(np.uint8).tobytes(),
}


def speech(seconds=8.0):
    """A voice at a telephone's level, over and over."""
    words = np.concatenate([clip("order"), clip("address")])[::2]
    words = words * (0.1 / float(np.sqrt(np.mean(words**2))))
    return np.resize(words, int(seconds * RATE_HZ)).astype(np.float32)


def notices(data, encoding, num_channels=1, rate_hz=RATE_HZ, voiced=True):
    watch = LineWatch(AudioFormat(encoding=encoding, sample_rate_hz=rate_hz, num_channels=num_channels))
    size = rate_hz * FRAME_MS // 1000 * BYTES[encoding] * num_channels
    frames = (data[start : start + size] for start in range(0, len(data) - size + 1, size))
    return [notice for frame in frames for notice in watch.hear(frame, [voiced] * num_channels)]


@pytest.mark.parametrize("sent", SENT)
@pytest.mark.parametrize("encoding", AudioEncoding)
def test_bytes_in_another_encoding_are_told_once_and_alone(sent, encoding):
    found = notices(SENT[sent](speech()), encoding)
    if sent == encoding.value:
        assert found == []
        return
    assert [n.code for n in found] == [NoticeCode.ENCODING_MISMATCH]
    said = found[0].message
    assert f"declared as {encoding.value}" in said
    assert f"looks like {sent}" in said


@pytest.mark.parametrize("encoding", AudioEncoding)
@pytest.mark.parametrize("kind", ["silence", "noise", "faint noise", "tone", "high tone"])
def test_sounds_that_are_no_speech_are_not_suspected(encoding, kind):
    time_s = np.arange(8 * RATE_HZ) / RATE_HZ
    noise = np.random.default_rng(1).standard_normal(len(time_s))
    sound = {
        "silence": np.zeros(len(time_s)),
        "noise": 0.1 * noise,
        "faint noise": 2e-3 * noise,
        "tone": 0.3 * np.sin(2 * np.pi * 440 * time_s) + 1e-3 * noise,
        "high tone": 0.3 * np.sin(2 * np.pi * 3_300 * time_s) + 1e-3 * noise,
    }[kind].astype(np.float32)
    assert notices(SENT[encoding.value](sound), encoding, voiced=False) == []


def turns(seconds=8.0):
    """Two parties, one after the other, on the lines of a call."""
    left = speech(seconds)
    is_left = (np.arange(len(left)) // RATE_HZ) % 3 < 2
    return np.stack([np.where(is_left, left, 0), np.where(is_left, 0, np.roll(left, 5_000))]).astype(np.float32)


@pytest.mark.parametrize("encoding", AudioEncoding)
@pytest.mark.parametrize("channels", ["turns", "the same twice"])
def test_two_channels_declared_as_one_are_told(encoding, channels):
    both = turns() if channels == "turns" else np.stack([speech(), speech()])
    data = SENT[encoding.value](both.T.reshape(-1))
    assert [n.code for n in notices(data, encoding, 1)] == [NoticeCode.SAMPLE_RATE_MISMATCH]
    assert [n.code for n in notices(data, encoding, 2)] == []


@pytest.mark.parametrize("encoding", AudioEncoding)
def test_one_channel_declared_as_two_is_told(encoding):
    found = notices(SENT[encoding.value](speech(16.0)), encoding, 2)
    assert [n.code for n in found] == [NoticeCode.SAMPLE_RATE_MISMATCH]
    assert "audio_channel_count" in found[0].message


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda x: np.clip(x * 8, -1, 32_767 / 32_768), "clips"),
        (lambda x: x * 0.03, "dBFS"),
        (lambda x: x + np.float32(0.12), "DC offset of 12%"),
    ],
)
@pytest.mark.parametrize("encoding", AudioEncoding)
def test_a_poor_line_is_told_once_with_its_remedy(change, word, encoding):
    found = notices(SENT[encoding.value](change(speech(12.0))), encoding)
    assert [(n.code, n.channel_tag) for n in found] == [(NoticeCode.POOR_LINE, 1)]
    assert word in found[0].message


def test_a_change_in_the_middle_of_a_long_call_is_still_found():
    data = SENT["MULAW"](speech(30.0)) + SENT["ALAW"](speech(120.0))
    assert [n.code for n in notices(data, AudioEncoding.MULAW)] == [NoticeCode.ENCODING_MISMATCH]


def test_watching_costs_next_to_nothing():
    data = SENT["MULAW"](speech(120.0))
    begun_s = process_time()
    assert notices(data, AudioEncoding.MULAW) == []
    assert (process_time() - begun_s) / 120.0 < 1e-3


@pytest.mark.data
def test_no_recording_is_suspected():
    folder = require_data()
    told = Counter()
    rows = [row for row in manifest(folder) if row["duration_s"] >= 2.5]
    for row in rows[::4]:
        samples = load(folder / str(row["path"]), RATE_HZ)[0][: 15 * RATE_HZ]
        for encoding in AudioEncoding:
            told.update((row["path"], n.code) for n in notices(SENT[encoding.value](samples), encoding))
    assert not told
