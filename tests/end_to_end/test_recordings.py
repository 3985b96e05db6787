"""All English recordings beside the project, as 8 kHz mu-law calls with every interim decoded.

Sessions advance in lockstep and their requests are decoded together, so that this takes minutes, not the length
of the audio, and no interim is left out for want of time.
"""

from dataclasses import dataclass, field

import jiwer
import numpy as np
import pytest

from pipeline.config import SessionConfig
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.events import RecognitionResult
from pipeline.session import NEED_AUDIO, RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat, Batch, DecodeHints, DecodeRequest
from tests.support import texts
from tests.support.audio import encode_mulaw, load, manifest, require_data

pytestmark = [pytest.mark.data, pytest.mark.slow]

RATE_HZ = 8_000
NUM_FILES = 88
NUM_SESSIONS = 8
MAX_WER_PERCENT = 4.2


def words(text):
    return texts.words(text.replace("#", " pound ").replace("*", " star "))


@dataclass
class Call:
    path: str
    reference: str
    audio_16k: np.ndarray
    session: RecognitionSession
    results: list[RecognitionResult] = field(default_factory=list)
    offline: str = ""

    @property
    def finals(self):
        return [r for r in self.results if r.is_final]

    @property
    def transcript(self):
        return " ".join(r.alternatives[0].transcript for r in self.finals if r.alternatives)

    def next_request(self) -> DecodeRequest | None:
        while (effect := self.session.next_effect()) is not NEED_AUDIO:
            if isinstance(effect, RecognitionResult):
                self.results.append(effect)
            elif isinstance(effect, DecodeRequest):
                return effect
        return None


def chosen(folder):
    return [
        row
        for row in manifest(folder)
        if row["kind"] in ("ivr-prompt", "read-speech")
        and (row["language"] or "").startswith("en")
        and row["text_kind"] == "verbatim"
        and row["duration_s"] >= 2
    ]


def open_call(folder, row) -> Call:
    path = folder / row["path"]
    audio_format = AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=RATE_HZ)
    session = RecognitionSession(row["path"], SessionConfig(audio_format=audio_format))
    session.receive_audio(encode_mulaw(load(path, RATE_HZ).mean(axis=0)))
    session.receive_end()
    return Call(row["path"], row["text"], load(path, 16_000).mean(axis=0), session)


def decode(engine, requests):
    longest_s = max(len(r.audio) for r in requests) / 16_000
    return engine.transcribe(Batch(requests=tuple(requests), padded_audio_s=longest_s * len(requests)))


def offline_request(call) -> DecodeRequest:
    return DecodeRequest(
        request_id=call.path,
        session_id="offline",
        segment_id=call.path,
        channel_tag=1,
        revision=1,
        audio=call.audio_16k,
        is_final=True,
        hints=DecodeHints(),
    )


@pytest.fixture(scope="module")
def calls():
    folder = require_data()
    rows = chosen(folder)
    assert len(rows) == NUM_FILES
    engine = WhisperEngine(WhisperSettings(model="tiny.en"))
    waiting, live, done = [open_call(folder, row) for row in rows], [], []
    while waiting or live:
        while waiting and len(live) < NUM_SESSIONS:
            live.append(waiting.pop())
        requests = [(call, request) for call in live if (request := call.next_request()) is not None]
        for call in [c for c in live if c not in [c for c, _ in requests]]:
            assert call.session.is_done
            call.session.close()
            live.remove(call)
            done.append(call)
        for is_final in (True, False):
            asked = [(call, request) for call, request in requests if request.is_final == is_final]
            results = decode(engine, [request for _, request in asked]) if asked else []
            for (call, _), result in zip(asked, results, strict=True):
                call.session.receive_decode(result)
    decodable = [call for call in done if len(call.audio_16k) <= 16 * engine.info.max_audio_ms]
    for start in range(0, len(decodable), NUM_SESSIONS):
        group = decodable[start : start + NUM_SESSIONS]
        for call, result in zip(group, decode(engine, [offline_request(c) for c in group]), strict=True):
            call.offline = result.alternatives[0].transcript if result.alternatives else ""
    engine.close()
    return done


def test_every_recording_gets_finals(calls):
    assert [c.path for c in calls if not c.transcript] == []


def test_word_error_rate(calls):
    references = [" ".join(words(c.reference)) for c in calls]
    live = 100 * jiwer.wer(references, [" ".join(words(c.transcript)) for c in calls])
    print(f"\nWER {live:.2f} %")
    assert live <= MAX_WER_PERCENT


def test_no_recording_loses_its_last_word(calls):
    def ends_right(call, text):
        # Spaces aside: "key words" lost nothing of "keywords".
        return "".join(words(text)).endswith(words(call.reference)[-1])

    lost = [c.path for c in calls if ends_right(c, c.offline) and not ends_right(c, c.transcript)]
    assert lost == []


def test_stable_text_never_changes(calls):
    changed, num_stable = [], 0
    for call in calls:
        stable: dict[str, str] = {}
        for result in call.results:
            text = result.alternatives[0].transcript if result.alternatives else ""
            if not text.startswith(stable.get(result.result_id, "")):
                changed.append((call.path, result.result_id))
            stable[result.result_id] = text[: result.stable_length]
            num_stable += not result.is_final and result.stable_length > 0
    assert num_stable > 50
    assert changed == []


def test_interims_come_at_least_once_a_second(calls):
    slow = []
    for call in calls:
        heard_ms = [r.result_end_ms for r in call.results if not r.is_final]
        segments_ms = sum(r.speech_end_ms - r.result_start_ms for r in call.finals)
        if len(heard_ms) < segments_ms / 1_000 - 1:
            slow.append((call.path, len(heard_ms), segments_ms))
    assert slow == []


def test_the_last_interim_is_close_to_its_final(calls):
    last: dict[tuple[str, str], str] = {}
    wrong = total = 0
    for call in calls:
        for result in call.results:
            key = (call.path, result.result_id)
            text = result.alternatives[0].transcript if result.alternatives else ""
            if result.is_final and key in last and words(text):
                measured = jiwer.process_words(" ".join(words(text)), " ".join(words(last[key])) or " ")
                # The last interim has not heard the end: missing words at its end are no errors.
                missing_at_end = max(0, len(words(text)) - len(words(last[key])))
                errors = measured.substitutions + measured.deletions + measured.insertions
                wrong += max(0, errors - missing_at_end)
                total += len(words(text))
            last[key] = text
    print(f"\nlast interim against final: {100 * wrong / total:.1f} % of words differ")
    assert wrong / total <= 0.08
