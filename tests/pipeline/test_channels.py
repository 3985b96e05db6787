"""Copies of a channel and leaks from one into the other: told from a party's own voice, and never taken for it."""

import numpy as np
import pytest

from pipeline.audio.codecs import decode
from pipeline.channels import ChannelPair, Origin
from pipeline.channels.duplicates import Likeness, is_copy, likeness
from pipeline.config import DenoisingMode, InterimConfig, SessionConfig, VadMode
from pipeline.events import RecognitionResult, SceneEvent, SceneKind, WithheldReason
from pipeline.session import RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat
from tests.support.audio import SAMPLE_CALLS, bursts, encode_mulaw, linear16, load, require_data, split
from tests.support.drivers import run_lockstep

RATE_HZ = 8_000
FRAME = RATE_HZ // 100
FINALS_ONLY = {"vad": VadMode.WEBRTC, "interim": InterimConfig(enabled=False)}
LEAKS = [(-10, 25), (-20, 0), (-20, 300), (-30, 120), (-35, 0)]


def coded(samples):
    """As a line carries it: rounded to mu-law."""
    return decode(encode_mulaw(samples), AudioEncoding.MULAW, 1)[0]


def leak(samples, level_db, delay_ms):
    """An echo: band-limited, smeared by a room, late and faint."""
    seconds = np.arange(-40, 41) / RATE_HZ
    band = 2 * 2_500 * np.sinc(2 * 2_500 * seconds) - 2 * 300 * np.sinc(2 * 300 * seconds)
    room = np.random.default_rng(9).standard_normal(400) * np.exp(-np.arange(400) / 100) * 0.1
    room[0] = 1
    voice = np.convolve(np.convolve(samples, band / RATE_HZ * np.hamming(81))[40:], room)
    late = np.concatenate([np.zeros(delay_ms * RATE_HZ // 1000), voice])[: len(samples)]
    return (late * 10 ** (level_db / 20)).astype(np.float32)


def sample_call(name="billing"):
    return load(SAMPLE_CALLS / f"{name}.wav", RATE_HZ)


def origins(first, second):
    pair = ChannelPair(FRAME, 0)
    frames = np.stack([first, second])[:, : len(first) // FRAME * FRAME].reshape(2, -1, FRAME)
    heard = [pair.hear(frames[:, number]) for number in range(frames.shape[1])]
    return {tag: np.array([h[tag] is not Origin.OWN for h in heard]) for tag in (1, 2)}


def frame_db(samples):
    frames = samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME)
    return 10 * np.log10((frames**2).mean(axis=1) + 1e-10)


def longest_run(flags):
    ends = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return int(np.max(ends[1::2] - ends[::2], initial=0))


def recognized(first, second, *, sizes=None, **fields):
    audio_format = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=RATE_HZ, num_channels=2)
    config = SessionConfig(audio_format=audio_format, scene_events=True, **fields)
    audio = linear16(np.stack([first, second]))
    return run_lockstep(RecognitionSession("call", config), split(audio, sizes or [len(audio)]))


def words_of(log, tag):
    return [r for r in log.of(RecognitionResult) if r.channel_tag == tag and r.alternatives]


def finals_of(log, tag):
    return [r for r in words_of(log, tag) if r.is_final]


@pytest.mark.parametrize("gain", [1.0, 0.8, 1.5])
@pytest.mark.parametrize("line", [np.array, coded])
def test_a_copied_channel_is_recognised_once(gain, line):
    mono = coded(sample_call().sum(axis=0) * 0.6)
    log = recognized(mono, line(mono * np.float32(gain)), vad=VadMode.WEBRTC)
    assert finals_of(log, 1)
    assert words_of(log, 2) == [], "a word came twice"
    scenes = log.of(SceneEvent)
    assert [(s.kind, s.channel_tag, s.is_over) for s in scenes] == [
        (SceneKind.DUPLICATE_CHANNEL, 2, False),
        (SceneKind.DUPLICATE_CHANNEL, 2, True),
    ]
    assert scenes[0].offset_ms == scenes[1].offset_ms < 1_000


def test_a_channel_that_is_no_copy_any_more_loses_no_word():
    agent, customer = sample_call()
    half = RATE_HZ * 15
    mixed = np.concatenate([agent[:half], customer[half:]])
    changed = recognized(agent, mixed, **FINALS_ONLY)
    alone = recognized(agent, np.concatenate([np.zeros(half, np.float32), customer[half:]]), **FINALS_ONLY)

    def later(log):
        return [(r.result_start_ms, r.result_end_ms) for r in finals_of(log, 2) if r.result_start_ms > 15_000]

    assert later(alone)
    assert len(later(changed)) == len(later(alone))
    for got, expected in zip(later(changed), later(alone), strict=True):
        assert got == pytest.approx(expected, abs=100)
    assert [r for r in finals_of(changed, 2) if r.result_end_ms < 15_000] == []


def test_channels_that_become_the_same_give_no_doubled_segment():
    noise = bursts([(600, 0.2), (900, 0)], seed=5)
    calls = bursts([(800, 0.2), (900, 0)] * 6, seed=6)
    options = {"vad": VadMode.ENERGY, "denoising": DenoisingMode.OFF}
    log = recognized(np.concatenate([noise * 0, calls]), np.concatenate([noise, calls]), **options)
    assert len(finals_of(log, 1)) == 6
    assert [r.result_start_ms < 1_000 for r in finals_of(log, 2)] == [True]
    assert {r.withheld for r in log.of(RecognitionResult) if r.channel_tag == 2 and r.is_final} == {
        None,
        WithheldReason.DUPLICATE,
    }


def test_silence_on_both_sides_says_nothing():
    silence = np.zeros(FRAME, dtype=np.float32)
    assert likeness(silence, silence) is Likeness.SILENT
    assert likeness(silence + 1e-4, silence) is Likeness.SILENT
    voice = bursts([(10, 0.1)])
    assert likeness(voice, silence) is Likeness.DIFFERENT
    assert likeness(voice, -voice) is Likeness.DIFFERENT
    assert likeness(voice, voice * 0.3) is Likeness.DIFFERENT, "so faint a copy is a leak"
    assert not is_copy(0, 0)


@pytest.mark.parametrize("level_db", [-50, -35, -20, -6])
def test_rounding_on_both_sides_is_no_difference(level_db):
    voice = bursts([(1_000, 10 ** (level_db / 20) / 3)])
    first, second = coded(voice), coded(voice * np.float32(0.9))
    kinds = {likeness(a, b) for a, b in zip(first.reshape(-1, FRAME), second.reshape(-1, FRAME), strict=True)}
    assert Likeness.DIFFERENT not in kinds


@pytest.mark.parametrize("name", ["billing", "address_change", "crosstalk", "hold"])
def test_two_parties_alone_are_never_masked(name):
    call = sample_call(name)
    masked = origins(*call)
    for tag, samples in enumerate(call, start=1):
        assert not (masked[tag] & (frame_db(samples) > -60)).any()


@pytest.mark.parametrize(("level_db", "delay_ms"), LEAKS)
def test_a_leak_gives_no_words_and_own_words_stay(level_db, delay_ms):
    agent, customer = (part[: 20 * RATE_HZ] for part in sample_call())
    echo = leak(agent, level_db, delay_ms)
    log = recognized(agent, coded(customer + echo), **FINALS_ONLY)
    clean = recognized(agent, coded(customer), **FINALS_ONLY)
    assert len(finals_of(log, 1)) == len(finals_of(clean, 1))
    spoken = [(r.result_start_ms, r.speech_end_ms) for r in finals_of(clean, 2)]
    heard = [(r.result_start_ms, r.speech_end_ms) for r in finals_of(log, 2)]
    covered = np.zeros(len(agent) // 8 + 1_000, dtype=bool)
    for start, end in heard:
        covered[start:end] = True
    for start, end in spoken:
        assert covered[start + 300 : end - 100].mean() > 0.95, "own words were lost"
    strangers = [h for h in heard if not any(h[0] < end and h[1] > start for start, end in spoken)]
    assert strangers == [], "the other party's words"
    assert all(s.channel_tag == 2 for s in log.of(SceneEvent) if s.kind is SceneKind.CROSSTALK)


@pytest.mark.parametrize(("level_db", "delay_ms"), LEAKS)
def test_double_talk_is_the_partys_own(level_db, delay_ms):
    agent = np.concatenate([sample_call("billing")[0], sample_call("address_change")[0]])
    customer = np.roll(agent, 7 * RATE_HZ)[: len(agent)] * np.float32(0.3)
    echo = leak(agent, level_db, delay_ms)
    masked = origins(agent, coded(customer + echo))[2]
    own = (frame_db(customer) > -45) & (frame_db(customer) > frame_db(echo))
    leaked = (frame_db(echo) > -57) & (frame_db(customer) < -62)
    # A frame here and there is no loss: speech goes on through anything shorter than the hangover.
    assert longest_run(masked & own) < 10, "100 ms is the shortest hangover"
    assert masked[own].mean() < 0.05
    assert masked[1_000:][leaked[1_000:]].mean() > 0.6


@pytest.mark.parametrize("sizes", [[1], [333, 7], [1_600]])
def test_what_is_withheld_does_not_depend_on_chunking(sizes):
    agent, customer = (part[: 6 * RATE_HZ] for part in sample_call())
    second = coded(customer + leak(agent, -20, 60))
    whole = recognized(agent, second, vad=VadMode.WEBRTC)
    cut = recognized(agent, second, vad=VadMode.WEBRTC, sizes=sizes)
    assert cut.of(SceneEvent) == whole.of(SceneEvent)
    results = [(r.result_id, r.is_final, r.result_end_ms, r.withheld) for r in whole.of(RecognitionResult)]
    assert [(r.result_id, r.is_final, r.result_end_ms, r.withheld) for r in cut.of(RecognitionResult)] == results


@pytest.mark.data
@pytest.mark.parametrize("leak_path", [None, *LEAKS])
def test_a_real_call_of_two_people(leak_path):
    folder = require_data() / "phone" / "aws-lca"
    sides = ("agent", "caller")
    agent, caller = (load(folder / f"Auto_Repairs_40_UTC_{side}.wav", RATE_HZ)[0][: 120 * RATE_HZ] for side in sides)
    echo = np.zeros_like(agent) if leak_path is None else leak(agent, *leak_path)
    masked = origins(coded(agent), coded(caller + echo))
    own = (frame_db(caller) > -45) & (frame_db(caller) > frame_db(echo) - 3)
    assert not masked[1].any()
    assert longest_run(masked[2] & own) < 10, "100 ms is the shortest hangover"
    assert masked[2][own].mean() < 0.01
    if leak_path is not None:
        leaked = (frame_db(echo) > -58) & (frame_db(caller) < -65)
        assert masked[2][leaked].mean() > 0.85
