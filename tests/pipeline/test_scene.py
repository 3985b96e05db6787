"""What the scene track finds in made sounds, and that recognition hears nothing of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config import DenoisingMode, InterimConfig, SessionConfig, VadMode
from pipeline.events import ActivityKind, RecognitionResult, SceneEvent, SceneKind, SpeechActivity
from pipeline.scene.keys import KeyLedger, KeySource
from pipeline.scene.presses import KeyPress
from pipeline.scene.removal import remove_tones
from pipeline.scene.silence import SilenceWatch
from pipeline.scene.track import SceneTrack
from pipeline.session import NEED_AUDIO, RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat, DecodeRequest
from tests.support.audio import SAMPLE_CALLS, bursts, linear16, load, split
from tests.support.drivers import run_lockstep, words_by_length
from tests.support.sounds import KEYS, as_heard, call_sounds, keys

ALL_KEYS = "0123456789*#ABCD"
LINE = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=8_000)
QUIET = (500, ())


def config(**changes):
    defaults = {"audio_format": LINE, "vad": VadMode.ENERGY, "denoising": DenoisingMode.OFF, "scene_events": True}
    return SessionConfig(**{**defaults, **changes})


def scene(parts, **sound):
    """Events of the track on a line of mu-law."""
    track = SceneTrack(1, config())
    heard = as_heard(call_sounds(parts, **sound))
    events = [event for frame in heard.reshape(-1, 160) for event in track.advance(frame)]
    return [event for event in [*events, *track.end()] if event.kind is not SceneKind.SILENCE]


def digits(events):
    return "".join(event.digit for event in events)


@pytest.mark.parametrize(("on_ms", "off_ms"), [(100, 50), (50, 50), (40, 40), (250, 250)])
@pytest.mark.parametrize("amplitude", [0.4, 0.1, 0.0075])
@pytest.mark.parametrize("snr_db", [None, 15])
def test_every_key_once_at_its_time(on_ms, off_ms, amplitude, snr_db):
    events = scene([QUIET, *keys(ALL_KEYS * 2, on_ms, off_ms), QUIET], amplitude=amplitude, snr_db=snr_db)
    assert digits(events) == ALL_KEYS * 2
    for index, event in enumerate(events):
        assert event.offset_ms == pytest.approx(500 + index * (on_ms + off_ms), abs=20)
        assert event.duration_ms == pytest.approx(on_ms, abs=20)


def test_a_key_pressed_again_is_another_press_and_a_click_in_one_is_not():
    assert digits(scene([QUIET, *keys("4111111111111111", 50, 40), QUIET])) == "4111111111111111"
    assert digits(scene([QUIET, (60, KEYS["5"]), (8, ()), (60, KEYS["5"]), QUIET])) == "5"


@pytest.mark.parametrize(("off", "expected"), [(-0.015, ALL_KEYS), (0.015, ALL_KEYS), (-0.035, ""), (0.035, "")])
def test_frequency_tolerance(off, expected):
    parts = [
        part
        for low, high in (KEYS[k] for k in ALL_KEYS)
        for part in ((80, (low * (1 + off), high * (1 + off))), (60, ()))
    ]
    assert digits(scene([QUIET, *parts, QUIET])) == expected


def test_too_short_a_key_is_none():
    assert scene([QUIET, *keys(ALL_KEYS, 22, 60), QUIET]) == []


@pytest.mark.parametrize(("high_db", "expected"), [(4, "5"), (-8, "5"), (14, ""), (-16, "")])
def test_twist(high_db, expected):
    low, high = KEYS["5"]
    time_s = np.arange(800) / 8_000
    press = 0.1 * np.sin(2 * np.pi * low * time_s) + 0.1 * 10 ** (high_db / 20) * np.sin(2 * np.pi * high * time_s)
    track = SceneTrack(1, config())
    line = np.concatenate([np.zeros(800), press, np.zeros(1_600)]).astype(np.float32)
    found = [event for frame in as_heard(line).reshape(-1, 160) for event in track.advance(frame)]
    assert digits(e for e in found if e.kind is SceneKind.DTMF) == expected


RING = (2_000, (440, 480))
CADENCES = {
    "US ringback": ([RING, (4_000, ()), RING], SceneKind.RINGBACK, 8_000),
    "UK ringback": (
        [(400, (400, 450)), (200, ()), (400, (400, 450)), (2_000, ()), (400, (400, 450))],
        "RINGBACK",
        3_400,
    ),
    "European ringback": ([(1_000, (425,)), (4_000, ()), (1_000, (425,))], "RINGBACK", 6_000),
    "double ring of one tone": ([(400, (425,)), (200, ()), (400, (425,)), (2_000, ())], "RINGBACK", 1_000),
    "US busy": ([(500, (480, 620)), (500, ())] * 3, "BUSY", 2_500),
    "US reorder": ([(250, (480, 620)), (250, ())] * 4, "BUSY", 1_750),
    "European busy": ([(500, (425,)), (500, ())] * 4, "BUSY", 3_500),
    "European congestion": ([(250, (425,)), (250, ())] * 4, "BUSY", 1_750),
    "UK busy": ([(375, (400,)), (375, ())] * 4, "BUSY", 2_625),
    "US dial tone": ([(3_000, (350, 440))], "DIAL_TONE", 3_000),
    "European dial tone": ([(4_000, (425,))], "DIAL_TONE", 4_000),
    "special information": ([(330, (950,)), (330, (1_400,)), (330, (1_800,))], "SPECIAL_INFORMATION", 990),
    "US special information": ([(276, (913.8,)), (276, (1_370.6,)), (380, (1_776.7,))], "SPECIAL_INFORMATION", 932),
    "fax calls": ([(500, (1_100,)), (3_000, ()), (500, (1_100,))], "FAX", 4_000),
    "fax answers": ([(3_000, (2_100,))], "FAX", 3_000),
    "beep": ([(500, (1_000,))], "BEEP", 500),
    "low beep": ([(440, (440,))], "BEEP", 440),
    "short beep": ([(120, (1_400,))], "BEEP", 120),
    "long beep": ([(1_900, (800,))], "BEEP", 1_900),
}


@pytest.mark.parametrize("snr_db", [None, 15])
@pytest.mark.parametrize("name", CADENCES)
def test_tones_of_networks_and_machines(name, snr_db):
    parts, kind, duration_ms = CADENCES[name]
    events = scene([QUIET, *parts, (7_000, ())], snr_db=snr_db)
    assert {event.kind for event in events} == {SceneKind(kind)}
    assert [event.is_over for event in events] == ([True] if kind in ("BEEP", "SPECIAL_INFORMATION") else [False, True])
    for event in events:
        assert event.offset_ms == pytest.approx(500, abs=100)
    assert events[-1].duration_ms == pytest.approx(duration_ms, abs=100)


@pytest.mark.parametrize("reversed_", [True, False])
def test_a_modem_turns_its_phase_or_moves_its_level(reversed_):
    time_s = np.arange(3_500 * 8) / 8_000
    phase = np.pi * (np.floor(time_s / 0.45) % 2) if reversed_ else 0
    level = 1 if reversed_ else 1 + 0.2 * np.sin(2 * np.pi * 15 * time_s)
    tone = 0.1 * level * np.sin(2 * np.pi * 2_100 * time_s + phase)
    line = np.concatenate([np.zeros(4_000), tone, np.zeros(8_000)]).astype(np.float32)
    track = SceneTrack(1, config())
    events = [event for frame in as_heard(line).reshape(-1, 160) for event in track.advance(frame)]
    assert [(event.kind, event.is_over) for event in events] == [(SceneKind.MODEM, False), (SceneKind.MODEM, True)]
    assert events[-1].duration_ms == pytest.approx(3_500, abs=100)


def test_a_melody_and_noise_are_none_of_these():
    melody = [(200, (hz,)) for hz in (523, 659, 784, 1_046, 784, 659)]
    assert scene([QUIET, *melody, (2_000, ())]) == []
    assert scene([(6_000, ())], amplitude=0.3, snr_db=0) == []


@pytest.mark.parametrize("vad", [VadMode.COMBINED, VadMode.ENERGY])
@pytest.mark.parametrize("name", ["US ringback", "European busy", "special information", "fax calls", "beep", "keys"])
def test_no_utterance_begins_on_tones(name, vad):
    parts = keys(ALL_KEYS) if name == "keys" else CADENCES[name][0]
    audio = linear16(call_sounds([QUIET, *parts, (1_000, ())]))
    log = run_lockstep(RecognitionSession("call", config(vad=vad, speech_activity_events=True)), [audio])
    assert log.of(SceneEvent)
    assert log.of(SpeechActivity) == log.of(RecognitionResult) == []


def test_a_tone_behind_speech_does_not_prolong_it_and_speech_over_one_is_heard():
    speech = load(SAMPLE_CALLS / "clip_hello.wav", 8_000)[0]
    ringing = call_sounds([(4_000, (440, 480))], amplitude=0.05)

    def bounds(line):
        session = RecognitionSession("call", config(vad=VadMode.COMBINED, speech_activity_events=True))
        return [event.offset_ms for event in run_lockstep(session, [linear16(line)]).of(SpeechActivity)]

    quiet = np.zeros(4_000, np.float32)
    alone = bounds(np.concatenate([quiet, speech, np.zeros(32_000, np.float32)]))
    before = bounds(np.concatenate([quiet, speech, ringing]))
    over = ringing.copy()
    over[4_000 : 4_000 + len(speech)] += speech[: len(over) - 4_000]
    assert len(alone) == 2
    assert before == pytest.approx(alone, abs=240)  # what is right behind a word takes a moment to tell from it
    first_word_ms = 500 + 300
    assert bounds(over)[0] == pytest.approx(first_word_ms, abs=150)


def test_a_key_is_taken_out_of_what_is_recognised():
    noise = bursts([(300, 0), (1_500, 0.05), (900, 0)])
    press = call_sounds([(100, KEYS["5"])], amplitude=0.2)
    line = noise.copy()
    line[8_000:8_800] += press
    requests = run_lockstep(RecognitionSession("call", config()), [linear16(line)]).of(DecodeRequest)
    final = next(request for request in requests if request.is_final)
    clean = next(
        r for r in run_lockstep(RecognitionSession("call", config()), [linear16(noise)]).of(DecodeRequest) if r.is_final
    )
    assert len(final.audio) == len(clean.audio)
    difference = final.audio - clean.audio
    assert np.mean(np.square(difference)) < 0.1 * np.mean(np.square(press)) * 1_600 / len(difference)


def test_tones_are_removed_and_the_rest_stays():
    time_s = np.arange(160) / 16_000
    press = KeyPress(digit="5", begin_ms=0, end_ms=100)
    tones = sum(np.sin(2 * np.pi * hz * time_s) for hz in press.frequencies_hz).astype(np.float32)
    noise = 0.1 * np.random.default_rng(1).standard_normal(160).astype(np.float32)
    rest = remove_tones(tones + noise, press.frequencies_hz)
    assert np.mean(np.square(rest - noise)) < 0.1 * np.mean(np.square(noise))


def test_the_same_key_from_both_sides_is_told_once():
    ledger = KeyLedger()
    reports = [(KeySource.MESSAGE, 100), (KeySource.AUDIO, 110), (KeySource.AUDIO, 260), (KeySource.MESSAGE, 300)]
    assert [ledger.is_news("1", source, at, at + 50) for source, at in reports] == [True, False, True, False]
    assert ledger.is_news("1", KeySource.MESSAGE, 1_000, 1_000)
    assert ledger.is_news("2", KeySource.AUDIO, 1_010, 1_060)


def test_keys_by_message_come_in_their_place_and_once():
    session = RecognitionSession("call", config(start_offset_ms=10_000))
    session.receive_audio(linear16(call_sounds([QUIET])))
    session.receive_key("5", 1)
    session.receive_audio(linear16(call_sounds([(100, KEYS["5"]), QUIET])))
    session.receive_key("6", 1)
    session.receive_gap(400)
    session.receive_end()
    told = []
    while (effect := session.next_effect()) is not NEED_AUDIO:
        told.append(
            (effect.kind, effect.digit, effect.offset_ms, effect.is_over) if isinstance(effect, SceneEvent) else None
        )
    session.close()
    assert [entry for entry in told if entry] == [
        (SceneKind.DTMF, "5", 10_500, True),
        (SceneKind.DTMF, "6", 11_100, True),
        (SceneKind.MISSING_AUDIO, "", 11_100, True),
    ]


def test_silence_is_told_when_it_is_long_and_when_it_ends():
    audio = linear16(bursts([(500, 0), (600, 0.3), (2_500, 0), (600, 0.3), (200, 0)]))
    log = run_lockstep(RecognitionSession("call", config(silence_after_ms=1_500)), [audio])
    begun, over = log.of(SceneEvent)
    assert (begun.kind, begun.is_over, over.is_over) == (SceneKind.SILENCE, False, True)
    assert begun.offset_ms == over.offset_ms == pytest.approx(1_100, abs=60)
    assert begun.duration_ms == pytest.approx(1_500, abs=20)
    assert over.duration_ms == pytest.approx(2_500, abs=60)


def test_a_short_silence_is_not_told():
    watch = SilenceWatch(1_000)
    assert watch.advance(900) is None
    assert watch.speech_began(950) is None
    watch.speech_ended(2_000)
    assert watch.advance(2_900) is None
    assert watch.advance(3_000) is not None


@given(sizes=st.lists(st.integers(1, 4_000), min_size=1, max_size=5))
@settings(max_examples=8, deadline=None)
def test_the_scene_does_not_depend_on_chunking(sizes):
    parts = [
        QUIET,
        *keys("159"),
        (1_000, (425,)),
        (700, ()),
        (300, (1_000,)),
        (600, ()),
        (1_000, (440, 480)),
        (300, ()),
    ]
    line = call_sounds(parts, snr_db=25)
    line[2_000:8_000] += 0.2 * bursts([(750, 0.3)])
    both = linear16(np.stack([line, np.roll(line, 4_000)]))
    stereo = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=8_000, num_channels=2)
    settings_ = config(audio_format=stereo, speech_activity_events=True, interim=InterimConfig(enabled=True))
    whole = run_lockstep(RecognitionSession("call", settings_), [both], words_by_length)
    pieces = run_lockstep(RecognitionSession("call", settings_), split(both, sizes), words_by_length)
    assert {event.channel_tag for event in whole.of(SceneEvent)} == {1, 2}
    assert repr(pieces.effects) == repr(whole.effects)
    assert ActivityKind.BEGIN in {event.kind for event in whole.of(SpeechActivity)}
