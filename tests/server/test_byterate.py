"""Live callers are told when their bytes come at the rate of another format; others are not."""

import random

import pytest

from pipeline.types import AudioEncoding, AudioFormat
from server.arrivals import bytes_per_second, describe
from server.byterate import ByteRateWatch

FORMAT = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=8_000)
DECLARED = bytes_per_second(FORMAT)


def told(arrivals):
    watch = ByteRateWatch(DECLARED, describe(FORMAT))
    return [message for num_bytes, now_s in arrivals if (message := watch.add_audio(num_bytes, now_s)) is not None]


def paced(factor, seconds=20.0, message_s=0.1, jitter_s=0.02):
    generator = random.Random(1)
    count = int(seconds / message_s)
    return [
        (int(factor * DECLARED * message_s), index * message_s + generator.uniform(0, jitter_s))
        for index in range(count)
    ]


@pytest.mark.parametrize("factor", [0.5, 0.25, 2.0, 4.0, 6.0, 1 / 3])
def test_a_steady_rate_of_another_format_is_told_once(factor):
    messages = told(paced(factor))
    assert len(messages) == 1
    assert f"{round(factor * DECLARED)} bytes a second" in messages[0]
    assert "LINEAR16 at 8000 Hz in 1 channel has 16000" in messages[0]


@pytest.mark.parametrize("factor", [0.9, 1.0, 1.1, 1.5, 0.7])
def test_the_declared_rate_and_odd_ones_are_not(factor):
    assert told(paced(factor)) == []


def test_a_recording_sent_at_once_is_not():
    assert told([(DECLARED, 0.01 * index) for index in range(600)]) == []
    assert told([(DECLARED * 4, 0.3 * index) for index in range(60)]) == []


def test_a_caller_that_leaves_out_silence_is_not():
    speech = [(1_600, 2.0 * turn + 0.1 * index) for turn in range(20) for index in range(8 + 5 * (turn % 2))]
    assert told(speech) == []


def test_a_pause_begins_anew():
    watch = ByteRateWatch(DECLARED, describe(FORMAT))
    arrivals = paced(2.0, seconds=30.0)
    for index, (num_bytes, now_s) in enumerate(arrivals):
        if index % 60 == 0:
            watch.pause()
        assert watch.add_audio(num_bytes, now_s) is None
