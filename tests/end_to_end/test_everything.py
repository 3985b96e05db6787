"""A call with everything in it: what was said, by whom, in which order, and what else was on the line."""

from collections.abc import Iterator
from typing import Any

import jiwer
import pytest

from pipeline.config import SessionConfig
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.events import RecognitionResult, SceneEvent, SceneKind
from pipeline.session import RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat
from tests.engines.support import finals_alone
from tests.support.audio import SAMPLE_CALLS, encode_mulaw, load, manifest, split
from tests.support.drivers import Log, run_lockstep
from tests.support.texts import words

pytestmark = pytest.mark.slow

NAME = "everything.wav"
RATE_HZ = 8_000
CHUNK_BYTES = 1_600
MAX_WER = 0.06
TOLERANCE_MS = 100
SILENCE_TOLERANCE_MS = 250
"""Endpointing says where speech ends, a little late."""


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    return next(row for row in manifest(SAMPLE_CALLS) if row["path"] == NAME)


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    engine = WhisperEngine(WhisperSettings(model="base"))

    audio_format = AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=RATE_HZ, num_channels=2)
    session = RecognitionSession("call", SessionConfig(audio_format=audio_format, scene_events=True))
    interleaved = encode_mulaw(load(SAMPLE_CALLS / NAME, RATE_HZ).T.reshape(-1))
    yield run_lockstep(session, split(interleaved, [CHUNK_BYTES]), finals_alone(engine))
    session.close()
    engine.close()


def finals(log: Log) -> list[RecognitionResult]:
    return [result for result in log.of(RecognitionResult) if result.is_final and result.alternatives]


def scenes(log: Log, kind: SceneKind, channel_tag: int, *, is_over: bool = True) -> list[SceneEvent]:
    return [
        scene
        for scene in log.of(SceneEvent)
        if (scene.kind, scene.channel_tag, scene.is_over) == (kind, channel_tag, is_over)
    ]


def span_ms(sound: dict[str, Any]) -> tuple[float, float]:
    return 1_000 * sound["start_s"], 1_000 * sound["end_s"]


def test_each_party_has_its_own_words(log: Log, truth: dict[str, Any]) -> None:
    for channel in truth["channels"]:
        said = " ".join(f.alternatives[0].transcript for f in finals(log) if f.channel_tag == channel["channel_tag"])
        assert jiwer.wer(" ".join(words(channel["text"])), " ".join(words(said))) <= MAX_WER


def test_turns_come_in_the_order_they_were_taken(log: Log, truth: dict[str, Any]) -> None:
    heard = [final.channel_tag for final in finals(log)]
    assert heard == [utterance["channel_tag"] for utterance in truth["utterances"]]


def test_keys_are_found_where_they_were_pressed(log: Log, truth: dict[str, Any]) -> None:
    pressed = [sound for sound in truth["sounds"] if sound["kind"] == "key"]
    found = scenes(log, SceneKind.DTMF, channel_tag=2)
    assert [scene.digit for scene in found] == [sound["key"] for sound in pressed]
    for scene, sound in zip(found, pressed, strict=True):
        assert scene.offset_ms == pytest.approx(span_ms(sound)[0], abs=TOLERANCE_MS)
    assert scenes(log, SceneKind.DTMF, channel_tag=1) == []


@pytest.mark.parametrize(
    ("sound_kind", "kind", "tolerance_ms"),
    [
        ("ringback", SceneKind.RINGBACK, TOLERANCE_MS),
        ("music", SceneKind.MUSIC, TOLERANCE_MS),
        ("silence", SceneKind.SILENCE, SILENCE_TOLERANCE_MS),
    ],
)
def test_what_lasts_is_told_with_its_begin_and_end(
    log: Log, truth: dict[str, Any], sound_kind: str, kind: SceneKind, tolerance_ms: int
) -> None:
    (sound,) = (sound for sound in truth["sounds"] if sound["kind"] == sound_kind)
    (scene,) = scenes(log, kind, channel_tag=1)
    assert len(scenes(log, kind, channel_tag=1, is_over=False)) == 1
    begin_ms, end_ms = span_ms(sound)
    assert scene.offset_ms == pytest.approx(begin_ms, abs=tolerance_ms)
    assert scene.offset_ms + scene.duration_ms == pytest.approx(end_ms, abs=tolerance_ms)


def test_nothing_else_is_on_the_line(log: Log) -> None:
    told = {(scene.kind, scene.channel_tag) for scene in log.of(SceneEvent)}
    known = {(SceneKind.DTMF, 2), (SceneKind.RINGBACK, 1), (SceneKind.MUSIC, 1), (SceneKind.SILENCE, 1)}
    assert told == known | {(SceneKind.SILENCE, 2)}
