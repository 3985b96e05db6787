"""Where nobody speaks nobody is written down: noise, music, tones, keys, silence, at three levels and mixed.

A few minutes here; `TALKPATH_NO_SPEECH_MINUTES=60 pytest -s tests/end_to_end/test_no_speech.py` for an hour of each.
"""

import os
from collections.abc import Iterator

import numpy as np
import pytest
from soxr import resample

from pipeline.audio.codecs import decode
from pipeline.config import SessionConfig
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.gates import GateThresholds
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.events import RecognitionResult
from pipeline.session import RecognitionSession
from pipeline.types import CORE_SAMPLE_RATE_HZ, AudioEncoding, AudioFormat, DecodeRequest, DecodeResult, Samples
from tests.engines.support import batch, request
from tests.support.audio import SAMPLE_CALLS, encode_mulaw, load, manifest, require_data, split
from tests.support.drivers import run_lockstep
from tests.support.noises import LEVELS_DB, RATE_HZ, at_level, mixtures, quiet_lines, recordings
from tests.support.texts import words

pytestmark = pytest.mark.slow

MINUTES = float(os.environ.get("TALKPATH_NO_SPEECH_MINUTES", "4"))
CHUNK_BYTES = 1_600
_DIGITS = "read/fsdd"
_QUIET_RMS = 0.01
"""-40 dBFS."""
_LINE_NOISE_RMS = 3e-4
_EVERYTHING_PASSES = GateThresholds(
    max_compression_ratio=100.0,
    min_mean_log_prob=-100.0,
    min_interim_log_prob=-100.0,
    max_no_speech_prob=1.0,
    max_doubtful_no_speech_prob=1.0,
    min_level_dbfs=-200.0,
)


@pytest.fixture(scope="module")
def engine() -> Iterator[WhisperEngine]:
    engine = WhisperEngine(WhisperSettings())
    yield engine
    engine.close()


def results(engine: WhisperEngine, samples: Samples) -> list[RecognitionResult]:
    def answer(request: DecodeRequest) -> DecodeResult:
        return engine.transcribe(batch(request))[0]

    audio_format = AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=RATE_HZ)
    session = RecognitionSession("call", SessionConfig(audio_format=audio_format))
    log = run_lockstep(session, split(encode_mulaw(samples), [CHUNK_BYTES]), answer)
    session.close()
    return [result for result in log.of(RecognitionResult) if result.alternatives]


def words_of(engine: WhisperEngine, calls: Iterator[Samples]) -> list[str]:
    return [result.alternatives[0].transcript for call in calls for result in results(engine, call)]


@pytest.mark.data
@pytest.mark.parametrize("level_db", LEVELS_DB)
def test_recordings_without_speech_give_no_words(engine: WhisperEngine, level_db: float) -> None:
    sounds = recordings(require_data())
    assert words_of(engine, (at_level(sound, level_db) for sound in sounds.values())) == []


@pytest.mark.data
def test_mixed_noise_music_and_tones_give_no_words(engine: WhisperEngine) -> None:
    sounds = list(recordings(require_data()).values())
    assert words_of(engine, mixtures(sounds, MINUTES, seed=1)) == []


def test_quiet_lines_give_no_words(engine: WhisperEngine) -> None:
    assert words_of(engine, quiet_lines(MINUTES, seed=1)) == []


@pytest.mark.data
def test_quiet_digits_are_not_taken_for_noise(engine: WhisperEngine) -> None:
    folder = require_data()
    rows = [row for row in manifest(folder) if str(row["path"]).startswith(_DIGITS)]
    without_gates = WhisperEngine(WhisperSettings(gates=_EVERYTHING_PASSES))
    lost, num_understood = [], 0
    for row in rows:
        call = quiet_call(load(folder / str(row["path"]), RATE_HZ).mean(0))
        heard = resample(decode(encode_mulaw(call), AudioEncoding.MULAW, 1)[0], RATE_HZ, CORE_SAMPLE_RATE_HZ)
        offline = without_gates.transcribe(batch(request(heard)))[0].alternatives
        if offline and words(offline[0].transcript) == words(str(row["text"])):
            num_understood += 1
            lost += [] if any(result.is_final for result in results(engine, call)) else [row["path"]]
    without_gates.close()
    assert num_understood > len(rows) / 3
    assert lost == []


def quiet_call(said: Samples) -> Samples:
    """A word at -40 dBFS with a second of line noise before and behind it."""
    loud = said[np.abs(said) > 0.1 * np.abs(said).max()]
    call = np.pad(said * (_QUIET_RMS / np.sqrt(np.square(loud).mean())), RATE_HZ)
    return (call + np.random.default_rng(1).normal(0, _LINE_NOISE_RMS, len(call))).astype(np.float32)


@pytest.mark.parametrize("level_db", LEVELS_DB)
def test_speech_over_hold_music_is_kept(engine: WhisperEngine, level_db: float) -> None:
    call = at_level(load(SAMPLE_CALLS / "hold.wav", RATE_HZ).sum(0), level_db)
    finals = [result for result in results(engine, call) if result.is_final]
    assert " ".join(final.alternatives[0].transcript for final in finals) == (
        "Please hold the line while I check your order. No problem. Take your time. "
        "Thank you for waiting. Your order will be there tomorrow."
    )
