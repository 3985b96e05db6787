"""Hints through a whole call: from the caller's settings to the words that come back."""

import numpy as np
import pytest

from clients.recognizer import Recognizer
from clients.types import CallSettings, CallStarted, Encoding, Result, SpeechContext
from pipeline.config import EndpointingConfig, SessionConfig
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.events import RecognitionResult
from pipeline.session import NEED_AUDIO, RecognitionSession
from pipeline.types import DEFAULT_BOOST, AudioEncoding, AudioFormat, Batch, DecodeHints, DecodeRequest
from pipeline.types import SpeechContext as Context
from tests.support.audio import ROOT, encode_mulaw, load
from tests.support.rare_names import RARE_NAMES

CLIPS = ROOT / "tests" / "engines" / "data" / "hints"
NAMES = tuple(name for name, _ in RARE_NAMES)


def mulaw(name, folder=CLIPS):
    return encode_mulaw(load(folder / f"{name}.wav", 8_000)[0])


async def test_a_call_with_hints_next_to_one_without(server_address):
    plain = CallSettings(encoding=Encoding.MULAW, sample_rate_hz=8_000, language_code="en")
    hinted = CallSettings(
        encoding=Encoding.MULAW,
        sample_rate_hz=8_000,
        language_code="en",
        speech_contexts=(SpeechContext(phrases=NAMES),),
    )
    texts = {}
    async with Recognizer(server_address) as recognizer:
        for settings in (plain, hinted):
            events = [event async for event in recognizer.stream([mulaw("szymborski")], settings)]
            started = next(e for e in events if isinstance(e, CallStarted))
            boosts = [context.boost for context in started.settings.speech_contexts]
            assert boosts == [DEFAULT_BOOST] * len(settings.speech_contexts)
            finals = [e for e in events if isinstance(e, Result) and e.is_final]
            texts[settings is hinted] = " ".join(f.transcript for f in finals)
    assert "Szymborski" in texts[True]
    assert "Szymborski" not in texts[False]


@pytest.fixture(scope="module")
def results():
    """One utterance with two names in it, between words that are known; every interim decoded."""
    engine = WhisperEngine(WhisperSettings(model="tiny.en", device="cpu"))
    config = SessionConfig(
        audio_format=AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=8_000),
        hints=DecodeHints(speech_contexts=(Context(phrases=NAMES, boost=20.0),)),
        endpointing=EndpointingConfig(hangover_ms=2_000),
    )
    session = RecognitionSession("call", config)
    known = mulaw("order", CLIPS.parent)
    session.receive_audio(known + mulaw("szymborski") + mulaw("norbrixen") + known)
    session.receive_end()
    found = []
    while (effect := session.next_effect()) is not NEED_AUDIO:
        if isinstance(effect, RecognitionResult):
            found.append(effect)
        elif isinstance(effect, DecodeRequest):
            batch = Batch(requests=(effect,), padded_audio_s=len(effect.audio) / 16_000)
            session.receive_decode(engine.transcribe(batch)[0])
    session.close()
    engine.close()
    return found


@pytest.mark.slow
def test_interims_have_hints_and_their_stable_text_stays(results):
    *interims, final = results
    assert final.is_final
    assert not any(r.is_final for r in interims)
    assert np.diff([r.stable_length for r in interims]).min() >= 0
    assert interims[-1].stable_length > 0
    stable = ""
    for result in results:
        text = result.alternatives[0].transcript
        assert text.startswith(stable)
        stable = text[: result.stable_length] if not result.is_final else stable
    assert any("Szymborski" in r.alternatives[0].transcript for r in interims)
    assert all(name in final.alternatives[0].transcript for name in ("Szymborski", "Norbrixen"))
