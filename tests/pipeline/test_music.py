import numpy as np
import pytest

from pipeline.audio.codecs import decode
from pipeline.audio.resampling import Resampler
from pipeline.scene.music import MusicDetector
from pipeline.types import FRAME_SAMPLES, AudioEncoding
from tests.support.audio import SAMPLE_CALLS, encode_mulaw, load, manifest, require_data

RATE_HZ = 16_000
SPEECH_KINDS = ("ivr-prompt", "read-speech", "phone-call")
SCALE_HZ = (262, 294, 330, 349, 392, 440, 494, 523)


def hear(samples, detector=None):
    """Stretches of music as pairs of frames, and whether there was music after each frame."""
    detector = detector or MusicDetector()
    frames = samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    was_on, stretches, seen = False, [], []
    for frame in frames:
        detector.advance(frame)
        if was_on and not detector.is_on:
            stretches.append((detector.begin_frame, detector.end_frame))
        was_on = detector.is_on
        seen.append(was_on)
    if was_on:
        stretches.append((detector.begin_frame, len(frames)))
    return stretches, np.array(seen)


def note(hz, duration_s, vibrato_hz=0.0):
    t = np.arange(int(duration_s * RATE_HZ)) / RATE_HZ
    phase = 2 * np.pi * hz * t + vibrato_hz / 5 * np.sin(2 * np.pi * 5 * t)
    return sum(np.sin(k * phase) / k for k in range(1, 7)) * np.exp(-1.5 * t / duration_s)


def arpeggios(duration_s):
    """Three voices, each note 0.35 s long, the lowest four times as long."""
    count = int(duration_s / 1.4) + 1
    parts = []
    for bar in range(count):
        root = SCALE_HZ[(0, 5, 3, 4)[bar % 4]] / 2
        upper = np.concatenate([note(root * ratio, 0.35) for ratio in (2, 2.5, 3, 4)])
        parts.append(upper + note(root, 1.4))
    return np.concatenate(parts)


def chords_with_drums(duration_s):
    generator = np.random.default_rng(3)
    beat = generator.standard_normal(RATE_HZ // 2) * np.exp(-np.arange(RATE_HZ // 2) / 400)
    parts = []
    for bar in range(int(duration_s / 2) + 1):
        root = SCALE_HZ[(0, 4, 5, 3)[bar % 4]]
        chord = sum(note(root * ratio, 2.0) for ratio in (1, 1.25, 1.5))
        parts.append(chord + np.tile(beat, 4))
    return np.concatenate(parts)


def waltz(duration_s):
    """A melody with vibrato of 2 Hz over a bass and two chords a bar."""
    parts = []
    for bar in range(int(duration_s / 1.5) + 1):
        root = SCALE_HZ[(0, 3, 4, 0)[bar % 4]]
        chord = note(root * 1.25, 0.5) + note(root * 1.5, 0.5)
        parts.append(np.concatenate([note(root / 2, 0.5), chord, chord]) + note(root * 2, 1.5, vibrato_hz=2.0))
    return np.concatenate(parts)


STYLES = (arpeggios, chords_with_drums, waltz)


def at_level(samples, dbfs):
    return (samples * 10 ** (dbfs / 20) / np.sqrt(np.mean(samples**2))).astype(np.float32)


def decoded_mulaw(data):
    """At 16 kHz, as the front end hears it."""
    resampler = Resampler(8_000, RATE_HZ)
    narrow = decode(data, AudioEncoding.MULAW, 1)[0]
    frames = narrow[: len(narrow) // 80 * 80].reshape(-1, 80)
    return np.concatenate([resampler.process(frame) for frame in frames])


def quiet(duration_s):
    return np.zeros(int(duration_s * RATE_HZ), np.float32)


def found_share(stretches, num_samples):
    return sum(end - begin for begin, end in stretches) * FRAME_SAMPLES / num_samples


@pytest.mark.parametrize("dbfs", [-12, -26, -40])
@pytest.mark.parametrize("style", STYLES)
def test_music_is_found_soon_and_dated_back_to_its_first_note(style, dbfs):
    music = at_level(style(12), dbfs)
    stretches, seen = hear(np.concatenate([quiet(1), music, quiet(4)]))
    assert len(stretches) == 1
    begin, end = stretches[0]
    assert abs(begin - 100) <= 10
    assert abs(end - 100 - len(music) // FRAME_SAMPLES) <= 40  # the last note dies away
    assert np.argmax(seen) - 100 <= 450


@pytest.mark.parametrize("name", ["clip_hello.wav", "clip_numbers.wav", "billing.wav", "address_change.wav"])
def test_speech_is_not_music(name):
    for channel in load(SAMPLE_CALLS / name, RATE_HZ):
        assert hear(np.concatenate([channel, channel, quiet(2)]))[0] == []


def test_two_people_at_once_are_not_music():
    first, second = (
        load(SAMPLE_CALLS / "clip_hello.wav", RATE_HZ)[0],
        load(SAMPLE_CALLS / "clip_numbers.wav", RATE_HZ)[0],
    )
    num_samples = max(len(first), len(second))
    assert hear(np.tile(np.resize(first, num_samples) + np.resize(second, num_samples), 2))[0] == []


@pytest.mark.parametrize("pitches_hz", [(440,), (440, 480), (480, 620), (425,), (697, 1209)])
def test_steady_tones_are_not_music(pitches_hz):
    t = np.arange(10 * RATE_HZ) / RATE_HZ
    tone = at_level(sum(np.sin(2 * np.pi * hz * t) for hz in pitches_hz), -16)
    assert hear(tone)[0] == []


def test_noise_and_silence_are_not_music():
    noise = at_level(np.random.default_rng(1).standard_normal(10 * RATE_HZ), -25)
    assert hear(noise)[0] == []
    assert hear(quiet(10))[0] == []


def test_music_goes_on_under_an_announcement():
    music = at_level(arpeggios(20), -26)
    words = load(SAMPLE_CALLS / "clip_hello.wav", RATE_HZ)[0]
    words = at_level(words, -24)
    music[8 * RATE_HZ : 8 * RATE_HZ + len(words)] += words
    stretches, _ = hear(music)
    assert len(stretches) == 1
    assert found_share(stretches, len(music)) > 0.95


def test_speech_behind_music_ends_it():
    words = np.tile(load(SAMPLE_CALLS / "clip_hello.wav", RATE_HZ)[0], 4)
    music = at_level(chords_with_drums(10), -26)
    stretches, _ = hear(np.concatenate([music, words]))
    assert len(stretches) == 1
    assert abs(stretches[0][1] - len(music) // FRAME_SAMPLES) <= 100


@pytest.mark.parametrize("gain_db", [0, 12])
def test_a_hum_far_under_the_voice_is_not_music_however_loud_the_line(gain_db):
    voice = load(SAMPLE_CALLS / "clip_hello.wav", RATE_HZ)[0]
    hum = at_level(chords_with_drums(20), -62)
    line = np.concatenate([at_level(voice, -15), quiet(20)])
    line[-len(quiet(20)) :] += hum[: len(quiet(20))]
    assert hear(np.clip(line * 10 ** (gain_db / 20), -1, 1).astype(np.float32))[0] == []


@pytest.mark.data
@pytest.mark.parametrize("gain_db", [-12, 0, 6])
def test_no_recorded_speech_or_noise_is_music(gain_db):
    folder = require_data()
    called_music = []
    for row in manifest(folder):
        if row["kind"] in (*SPEECH_KINDS, "noise", "dtmf"):
            for channel in load(folder / str(row["path"]), RATE_HZ):
                channel = np.clip(channel * 10 ** (gain_db / 20), -1, 1).astype(np.float32)
                if hear(np.concatenate([channel, quiet(2)]))[0]:
                    called_music.append(row["path"])
    assert called_music == []


@pytest.mark.data
@pytest.mark.parametrize("dbfs", [-12, -26, -40])
def test_hold_music_is_found_through_g711(dbfs):
    folder = require_data()
    for row in manifest(folder):
        if row["kind"] == "music":
            narrow = at_level(load(folder / str(row["path"]), 8_000)[0], dbfs)
            music = decoded_mulaw(encode_mulaw(np.clip(narrow, -0.99, 0.99)))
            assert found_share(hear(music)[0], len(music)) >= 0.95, row["path"]
