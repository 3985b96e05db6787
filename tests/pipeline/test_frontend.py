"""What runs on which line, and that what is spared is not missed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config import DenoisingMode, InterimConfig, SessionConfig, VadMode
from pipeline.denoising import Denoiser
from pipeline.events import SceneEvent, SceneKind
from pipeline.frontend import ChannelFrontEnd, SpeechPaused, SpeechStarted, SpeechStopped
from pipeline.session import RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat, SpeechSegment
from pipeline.vad.silero import SileroNetwork
from tests.support.audio import SAMPLE_CALLS, linear16, load, split
from tests.support.drivers import run_lockstep

AUDIO_FORMAT = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=8_000)
FRAME = 80


@pytest.fixture
def calls(monkeypatch):
    """Counts how often the costly stages run."""
    counter = Counter()
    SileroNetwork().begin_on_quiet_line()  # measured once in a process
    for owner in (Denoiser, SileroNetwork):
        monkeypatch.setattr(owner, "process", counted(owner.process, owner.__name__, counter))
    return counter


def counted(method, name, counter):
    def process(*args):
        counter[name] += 1
        return method(*args)

    return process


def noise(duration_s, dbfs, seed=1):
    amplitude = 10 ** (dbfs / 20)
    return amplitude * np.random.default_rng(seed).standard_normal(int(duration_s * 8_000)).astype(np.float32)


def call(dbfs, lead_s=4.0):
    """Noise, somebody speaks, noise."""
    speech = load(SAMPLE_CALLS / "clip_hello.wav", 8_000)[0]
    line = noise(lead_s + len(speech) / 8_000 + 2, dbfs)
    start = int(lead_s * 8_000)
    line[start : start + len(speech)] += speech
    return line


def run(samples, **config):
    front_end = ChannelFrontEnd(1, SessionConfig(audio_format=AUDIO_FORMAT, **config))
    events = []
    for frame in samples[: len(samples) // FRAME * FRAME].reshape(-1, FRAME):
        events += front_end.advance(frame)
    events += front_end.end()
    front_end.close()
    return [e for e in events if not (isinstance(e, SceneEvent) and e.kind is SceneKind.SILENCE)]


def bounds(events):
    return [e.sample for e in events if isinstance(e, SpeechStarted | SpeechStopped)]


def test_on_a_silent_line_nothing_costly_runs(calls):
    assert run(np.zeros(80_000, np.float32)) == []
    assert not calls


@pytest.mark.parametrize("dbfs", [-70, -60, -55])
def test_on_an_idle_clean_line_next_to_nothing_costly_runs(calls, dbfs):
    assert run(noise(20, dbfs)) == []
    assert calls["Denoiser"] == 0
    assert calls["SileroNetwork"] <= 100  # of 625 chunks: until the floor is known


def test_a_clean_line_is_not_denoised_while_somebody_speaks(calls):
    samples = call(-65)
    events = run(samples)
    assert [type(e) for e in events] == [SpeechStarted, SpeechPaused, SpeechStopped, SpeechSegment]
    assert calls["Denoiser"] == 0
    assert 0 < calls["SileroNetwork"] < 0.7 * len(samples) / 256


@pytest.mark.parametrize("dbfs", [-45, -38])
def test_a_noisy_line_is_denoised_and_speech_on_it_found(calls, dbfs):
    noisy, clean = bounds(run(call(dbfs))), bounds(run(call(-65)))
    assert calls["Denoiser"] > 50
    assert len(noisy) == len(clean) == 2
    assert noisy[0] == pytest.approx(clean[0], abs=100 * 16)


def test_an_idle_noisy_line_rests_too(calls):
    run(noise(20, -40))
    assert calls["Denoiser"] < 600  # of 2000 frames


def test_a_mix_always_goes_through_the_denoiser(calls):
    run(np.zeros(8_000, np.float32), denoising=DenoisingMode.MIX)
    assert calls["Denoiser"] == 100


def test_off_means_off(calls):
    run(call(-38), denoising=DenoisingMode.OFF)
    assert calls["Denoiser"] == 0


@pytest.mark.parametrize("vad", VadMode)
@pytest.mark.parametrize("denoising", DenoisingMode)
def test_every_mode_finds_the_utterance_on_a_clean_line(vad, denoising):
    starts = [e.sample for e in run(call(-65), vad=vad, denoising=denoising) if isinstance(e, SpeechStarted)]
    assert any(start == pytest.approx(4 * 16_000, abs=500 * 16) for start in starts)


@pytest.mark.parametrize("dbfs", [-65, -45])
def test_the_same_audio_gives_the_same_events(dbfs):
    first, second = run(call(dbfs)), run(call(dbfs))
    assert first == second
    pairs = zip(first, second, strict=True)
    assert all(np.array_equal(a.samples, b.samples) for a, b in pairs if isinstance(a, SpeechSegment))


@given(sizes=st.lists(st.integers(1, 4_000), min_size=1, max_size=5), dbfs=st.sampled_from([-65, -50, -42]))
@settings(max_examples=10, deadline=None)
def test_gates_do_not_depend_on_chunking(sizes, dbfs):
    audio = linear16(call(dbfs, lead_s=2.0))
    config = SessionConfig(audio_format=AUDIO_FORMAT, speech_activity_events=True, interim=InterimConfig(enabled=False))
    whole = run_lockstep(RecognitionSession("call", config), [audio])
    pieces = run_lockstep(RecognitionSession("call", config), split(audio, sizes))
    assert len(whole.effects) > 2
    assert repr(pieces.effects) == repr(whole.effects)
