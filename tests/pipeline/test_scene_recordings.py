"""Real recordings: every key is found, and no voice, music or noise is taken for one."""

import numpy as np
import pytest

from pipeline.config import SessionConfig
from pipeline.events import SceneKind
from pipeline.scene.track import SceneTrack
from pipeline.types import AudioEncoding, AudioFormat
from tests.support.audio import load, manifest, require_data
from tests.support.sounds import as_heard, call_sounds, keys

pytestmark = [pytest.mark.data, pytest.mark.slow]
CONFIG = SessionConfig(audio_format=AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=8_000))


def scene(samples):
    track = SceneTrack(1, CONFIG)
    events = [event for frame in as_heard(samples).reshape(-1, 160) for event in track.advance(frame)]
    return [event for event in [*events, *track.end()] if event.kind not in (SceneKind.SILENCE, SceneKind.MUSIC)]


def recordings(*kinds):
    folder = require_data()
    for row in manifest(folder):
        if row["kind"] in kinds:
            for samples in load(folder / row["path"], 8_000):
                yield row, samples


def test_every_recorded_key_is_found():
    for row, samples in recordings("dtmf"):
        assert "".join(event.digit for event in scene(samples)) == row["text"], row["path"]


def test_no_voice_and_no_music_is_a_key_or_a_tone():
    for row, samples in recordings("ivr-prompt", "read-speech", "phone-call", "music"):
        assert scene(samples) == [], row["path"]


def test_recorded_tones_are_what_they_are():
    expected = {
        "noise/asterisk__beep.wav": {SceneKind.BEEP},
        "noise/baresip__busy.wav": {SceneKind.BUSY},
        "noise/baresip__ringback.wav": {SceneKind.RINGBACK},
    }
    for row, samples in recordings("noise"):
        assert {event.kind for event in scene(samples)} == expected.get(row["path"], set()), row["path"]


def test_keys_are_found_under_a_voice():
    pressed = "0123456789*#ABCD" * 2
    line = call_sounds([(300, ()), *keys(pressed, 100, 80)], amplitude=0.1)
    voices = [samples for row, samples in recordings("phone-call") if "watson" in str(row["path"])]
    found = total = wrong = 0
    for voice in voices:
        voice = np.resize(voice, len(line))
        loud = 0.1 * 10 ** (-6 / 20) / np.sqrt(np.mean(np.square(voice)))
        told = [event for event in scene(line + loud * voice) if event.kind is SceneKind.DTMF]
        due = {300 + 180 * index: digit for index, digit in enumerate(pressed)}
        heard = {
            start for start, digit in due.items() for e in told if e.digit == digit and abs(e.offset_ms - start) < 60
        }
        found, total, wrong = found + len(heard), total + len(due), wrong + max(0, len(told) - len(heard))
    print(f"keys under a voice 6 dB below them: {found} of {total}, {wrong} wrong")
    assert found >= 0.94 * total
    assert wrong <= 0.01 * total
