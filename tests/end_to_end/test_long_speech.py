"""Minutes of speech without a pause: cut into segments, and no word is lost or said twice where they meet."""

from dataclasses import dataclass
from itertools import cycle

import jiwer
import numpy as np
import pytest

from pipeline.config import SessionConfig
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.events import RecognitionResult
from pipeline.session import RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat, EndReason, Samples
from tests.engines.support import batch, finals_alone, request, text
from tests.support.audio import SAMPLE_CALLS, linear16, load, manifest, require_data, split
from tests.support.drivers import run_lockstep
from tests.support.texts import words

pytestmark = pytest.mark.slow

RATE_HZ = 16_000
WINDOW_SAMPLES = 160
MAX_PAUSE_WINDOWS = 20
"""200 ms: no hangover ends in it."""
DIALOGUES = ("address_change.wav", "clip_hello.wav", "clip_numbers.wav")
"""Short enough for one decode, and nobody speaks at the same time as the other."""
LEVEL_RMS = 0.1
QUIET_SHARE = 0.02
"""Of the loudest 10 ms."""
MAX_EXTRA_WER = 0.01


@dataclass(frozen=True)
class Said:
    samples: Samples
    text: str


@dataclass(frozen=True)
class Heard:
    finals: list[RecognitionResult]
    words: list[list[str]]
    """Of each final."""


@pytest.fixture(scope="module")
def engine():
    engine = WhisperEngine(WhisperSettings())
    yield engine
    engine.close()


def without_pauses(samples: Samples) -> Samples:
    """At one level, with nothing at the ends and no pause longer than 200 ms."""
    windows = samples[: len(samples) // WINDOW_SAMPLES * WINDOW_SAMPLES].reshape(-1, WINDOW_SAMPLES)
    level = np.sqrt(np.square(windows).mean(1))
    is_loud = level > QUIET_SHARE * level.max()
    quiet_for = np.zeros(len(windows), int)
    for index, loud in enumerate(is_loud):
        quiet_for[index] = 0 if loud else quiet_for[index - 1] + 1
    first, last = np.flatnonzero(is_loud)[[0, -1]]
    kept = (quiet_for <= MAX_PAUSE_WINDOWS) & (np.arange(len(windows)) >= first) & (np.arange(len(windows)) <= last + 5)
    loud_part = windows[kept].ravel()
    return np.clip(loud_part * (LEVEL_RMS / np.sqrt(np.square(loud_part).mean())), -0.99, 0.99).astype(np.float32)


def listen(engine: WhisperEngine, samples: Samples) -> Heard:
    config = SessionConfig(audio_format=AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=RATE_HZ))
    log = run_lockstep(RecognitionSession("long", config), split(linear16(samples), [3_200]), finals_alone(engine))
    finals = [result for result in log.of(RecognitionResult) if result.is_final]
    return Heard(finals, [words(final.alternatives[0].transcript if final.alternatives else "") for final in finals])


def check_seams(heard: Heard, reference: list[str], max_lost: int) -> None:
    """How much is missing right at a seam; nothing is said on both sides of one."""
    whole = [word for part in heard.words for word in part]
    aligned = jiwer.process_words(" ".join(reference), " ".join(whole)).alignments[0]
    missing_at = {chunk.hyp_start_idx for chunk in aligned if chunk.type == "delete"}
    position = num_lost = 0
    for left, right in zip(heard.words, heard.words[1:], strict=False):
        position += len(left)
        num_lost += position in missing_at
        for count in (1, 2, 3):
            doubled = left[-count:] + right[:count]
            if right and left[-count:] == right[:count]:
                assert any(doubled == reference[i : i + 2 * count] for i in range(len(reference))), doubled
    # tiny.en may lose the first word of a segment that begins inside a sentence: nothing tells it what came before.
    assert num_lost <= max_lost


def check(engine: WhisperEngine, said: list[Said], max_lost: int) -> None:
    heard = listen(engine, np.concatenate([one.samples for one in said]))
    assert sum(final.end_reason is EndReason.MAX_LENGTH for final in heard.finals) >= 3
    edges = [(final.result_start_ms, final.result_end_ms) for final in heard.finals]
    assert all(start >= end for (_, end), (start, _) in zip(edges, edges[1:], strict=False))
    reference = " ".join(word for one in said for word in words(one.text))
    offline = " ".join(word for one in said for word in words(text(engine.transcribe(batch(request(one.samples)))[0])))
    whole = " ".join(word for part in heard.words for word in part)
    wer, offline_wer = jiwer.wer(reference, whole), jiwer.wer(reference, offline)
    print(f"{wer:.2%} of the words wrong, {offline_wer:.2%} clip by clip; {len(heard.finals)} segments")
    assert wer <= offline_wer + MAX_EXTRA_WER
    check_seams(heard, reference.split(), max_lost)


def test_dialogue_without_a_pause(engine: WhisperEngine) -> None:
    rows = [row for row in manifest(SAMPLE_CALLS) if row["path"] in DIALOGUES]
    clips = [Said(without_pauses(load(SAMPLE_CALLS / str(r["path"]), RATE_HZ).sum(0)), str(r["text"])) for r in rows]
    said, total = [], 0
    for one in cycle(clips):
        if total > 100 * RATE_HZ:
            break
        said.append(one)
        total += len(one.samples)
    check(engine, said, max_lost=0)


@pytest.mark.data
def test_five_minutes_of_reading_without_a_pause(engine: WhisperEngine) -> None:
    folder = require_data()
    rows = [
        row
        for row in manifest(folder)
        if row["kind"] in ("read-speech", "ivr-prompt")
        and str(row["language"]).startswith("en")
        and row["text"]
        and 2 <= float(str(row["duration_s"])) <= 25
    ]
    said, total = [], 0
    for row in sorted(rows, key=lambda row: (row["kind"] != "read-speech", row["path"])):
        if total > 300 * RATE_HZ:
            break
        said.append(Said(without_pauses(load(folder / str(row["path"]), RATE_HZ).mean(0)), str(row["text"])))
        total += len(said[-1].samples)
    assert total > 300 * RATE_HZ
    check(engine, said, max_lost=3)
