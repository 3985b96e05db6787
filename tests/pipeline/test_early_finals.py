"""Finals asked for in a pause: the final when speech has ended, one more interim when it goes on."""

import numpy as np
import pytest

from pipeline.config import InterimConfig, SessionConfig
from pipeline.events import RecognitionResult
from pipeline.segmentation import OpenSegment
from pipeline.sequencing import ResultSequencer
from pipeline.types import (
    AudioEncoding,
    AudioFormat,
    CancelDecode,
    DecodeRequest,
    DecodeResult,
    EndReason,
    Hypothesis,
    SpeechSegment,
)

_FORMAT = AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=16_000)


@pytest.fixture
def results() -> ResultSequencer:
    return ResultSequencer("call", 1, SessionConfig(audio_format=_FORMAT))


def _open(seconds: float) -> OpenSegment:
    samples = np.zeros(int(16_000 * seconds), np.float32)
    return OpenSegment(segment_id="1-1", channel_tag=1, start_sample=0, speech_start_sample=0, samples=samples)


def _closed(seconds: float) -> SpeechSegment:
    return SpeechSegment(
        segment_id="1-1",
        channel_tag=1,
        start_sample=0,
        speech_start_sample=0,
        speech_end_sample=8_000,
        samples=np.zeros(int(16_000 * seconds), np.float32),
        end_reason=EndReason.SILENCE,
    )


def _answer(request: DecodeRequest, transcript: str = "yes") -> DecodeResult:
    words = Hypothesis(transcript=transcript, confidence=0.9, language_code="en", words=())
    return DecodeResult(request_id=request.request_id, alternatives=(words,))


def _early(results: ResultSequencer, seconds: float = 1.0) -> DecodeRequest:
    (request,) = results.request_early_final(_open(seconds), 8_000)
    assert isinstance(request, DecodeRequest)
    assert request.is_final
    return request


def _kinds(effects: list[object]) -> list[object]:
    return [e.is_final if isinstance(e, RecognitionResult) else type(e) for e in effects]


def test_an_answer_that_is_there_becomes_the_final_at_once(results: ResultSequencer) -> None:
    request = _early(results)
    shown = list(results.receive(_answer(request)))
    assert _kinds(shown) == [False]
    final = list(results.request_final(_closed(1.0)))
    assert _kinds(final) == [True]
    assert final[0].alternatives[0].transcript == "yes"
    assert results.is_idle


def test_an_answer_under_way_becomes_the_final_when_it_comes(results: ResultSequencer) -> None:
    request = _early(results)
    assert list(results.request_final(_closed(1.0))) == []
    assert not results.is_idle
    assert _kinds(list(results.receive(_answer(request)))) == [True]
    assert results.is_idle


@pytest.mark.parametrize("answered", [True, False])
def test_when_speech_goes_on_it_was_an_interim(results: ResultSequencer, answered: bool) -> None:
    request = _early(results)
    if answered:
        assert _kinds(list(results.receive(_answer(request)))) == [False]
    effects = list(results.request_final(_closed(2.0)))
    assert _kinds(effects) == ([DecodeRequest] if answered else [CancelDecode, DecodeRequest])
    final = effects[-1]
    assert isinstance(final, DecodeRequest)
    if not answered:
        assert _kinds(list(results.receive(_answer(request, "too early")))) == [False]
    assert _kinds(list(results.receive(_answer(final, "yes please")))) == [True]


def test_an_interim_asked_for_later_is_not_overtaken(results: ResultSequencer) -> None:
    early = _early(results)
    effects = list(results.request_interim(_open(1.5), 20_000))
    assert _kinds(effects) == [CancelDecode, DecodeRequest]
    final = list(results.request_final(_closed(1.0)))  # the same length as the early one, but it is not the newest
    assert DecodeRequest in _kinds(final)
    assert list(results.receive(_answer(early)))[0].is_final is False


def test_a_call_without_interims_sees_finals_alone() -> None:
    config = SessionConfig(audio_format=_FORMAT, interim=InterimConfig(enabled=False))
    results = ResultSequencer("call", 1, config)
    request = _early(results)
    assert list(results.receive(_answer(request))) == []
    assert _kinds(list(results.request_final(_closed(1.0)))) == [True]


def test_a_failed_early_final_is_told(results: ResultSequencer) -> None:
    request = _early(results)
    assert list(results.receive(DecodeResult(request_id=request.request_id, error="lost"))) == []
    effects = list(results.request_final(_closed(1.0)))
    assert len(effects) == 2
    assert effects[1].is_final
