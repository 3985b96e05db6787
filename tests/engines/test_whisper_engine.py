"""The engine as the worker sees it: batches, hints, refusals, drafts, and audio without words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.engines.base import Engine
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.quantization import supports_int8
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.types import DecodeRequest, DecodeResult, Samples, Task
from tests.engines.support import CLIP_TEXTS, batch, clip, read_wav, request, silence, text

_NOISE = np.random.default_rng(3).normal(0, 0.02, 3 * 16_000).astype(np.float32)


def _mixed_requests(is_final: bool) -> list[DecodeRequest]:
    audio = [clip("order"), silence(2), clip("number"), clip("hold")[:20_000], clip("address")]
    return [request(a, number=n, is_final=is_final, word_details=True) for n, a in enumerate(audio)]


@pytest.fixture(scope="module")
def single_finals(tiny: WhisperEngine) -> list[DecodeResult]:
    return [tiny.transcribe(batch(r))[0] for r in _mixed_requests(is_final=True)]


def test_it_is_an_engine(tiny: WhisperEngine) -> None:
    engine: Engine = tiny
    assert engine.info.model == "tiny.en"
    assert engine.info.language_codes == ("en",)
    assert (engine.info.device, engine.info.precision) == ("cpu", "int8" if supports_int8() else "float32")
    assert not engine.info.can_translate
    engine.release({("call", "unknown")})


def test_a_batch_equals_single_requests(tiny: WhisperEngine, single_finals: list[DecodeResult]) -> None:
    together = tiny.transcribe(batch(*_mixed_requests(is_final=True)))
    assert together == single_finals
    assert text(together[0]) == CLIP_TEXTS["order"]
    assert text(together[4]) == CLIP_TEXTS["address"]


def test_kinds_and_errors_mix_in_a_batch(tiny: WhisperEngine, single_finals: list[DecodeResult]) -> None:
    finals = _mixed_requests(is_final=True)
    odd = [
        request(np.zeros(31 * 16_000, np.float32), number=10),
        request(np.full(16_000, np.nan, np.float32), number=11),
        request(clip("order"), number=12, language_code="de"),
        request(clip("order"), number=13, task=Task.TRANSLATE),
        request(clip("order"), number=14, language_code="auto", allowed_language_codes=("fr", "es")),
        request(silence(0), number=15),
    ]
    interim = request(clip("hold"), number=16, is_final=False)
    results = tiny.transcribe(batch(odd[0], finals[0], *odd[1:3], interim, *odd[3:], finals[4]))
    assert [r.request_id for r in results] == [f"call/{n}" for n in (10, 0, 11, 12, 16, 13, 14, 15, 4)]
    assert (results[1], results[8]) == (single_finals[0], single_finals[4])
    assert text(results[4]) == CLIP_TEXTS["hold"]
    expected = {0: "31000 ms is longer than 30000 ms", 2: "finite", 3: "'de'", 5: "translate", 6: "fr, es"}
    for index, words in expected.items():
        assert words in (results[index].error or "")
        assert results[index].alternatives == ()
    assert text(results[7]) == ""


def test_interims_read_like_finals(tiny: WhisperEngine) -> None:
    requests = [request(clip(name), number=n, is_final=False) for n, name in enumerate(CLIP_TEXTS)]
    results = tiny.transcribe(batch(*requests))
    assert [text(r) for r in results] == list(CLIP_TEXTS.values())
    assert all(r.alternatives[0].words == () for r in results)


def test_the_audio_may_be_a_read_only_view(tiny: WhisperEngine) -> None:
    padded = np.concatenate([silence(1), clip("hold"), silence(1)])
    padded.flags.writeable = False
    view = padded[16_000 : 16_000 + len(clip("hold"))]
    assert text(tiny.transcribe(batch(request(view, is_final=False)))[0]) == CLIP_TEXTS["hold"]


class _CountingDecoder:
    """Counts the decoder's calls."""

    def __init__(self, engine: WhisperEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        decoder = engine._model.decoder
        forward = decoder.forward

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return forward(*args, **kwargs)

        monkeypatch.setattr(decoder, "forward", counted)


def _words(result: DecodeResult) -> list[tuple[str, tuple[int, ...], tuple[float, ...]]]:
    """Texts and tokens; certainties nearly, since their last decimals may hang on how many tokens were read at once."""
    return [
        (a.transcript, a.tokens, tuple(pytest.approx(c, abs=0.05) for c in a.certainties)) for a in result.alternatives
    ]


@pytest.mark.parametrize("audio", [clip("address"), clip("address")[:30_000]], ids=["same audio", "other audio"])
def test_a_draft_changes_the_cost_and_not_the_text(
    tiny: WhisperEngine, monkeypatch: pytest.MonkeyPatch, audio: Samples
) -> None:
    plain = tiny.transcribe(batch(request(audio, is_final=False)))[0]
    draft = tiny.transcribe(batch(request(clip("address"), is_final=False)))[0].alternatives[0].tokens
    counter = _CountingDecoder(tiny, monkeypatch)
    verified = tiny.transcribe(batch(request(audio, is_final=False, draft=draft)))[0]
    assert _words(verified) == _words(plain)
    assert counter.calls <= len(plain.alternatives[0].tokens) // 2
    nonsense = tiny.transcribe(batch(request(audio, is_final=False, draft=(5, 50_000, 999_999, 7))))[0]
    assert _words(nonsense) == _words(plain)


def test_drafts_of_different_length_share_a_batch(tiny: WhisperEngine) -> None:
    requests = [request(clip(name), number=n, is_final=False) for n, name in enumerate(CLIP_TEXTS)]
    plain = tiny.transcribe(batch(*requests))
    drafts = [r.alternatives[0].tokens[: 4 * n] for n, r in enumerate(plain)]
    with_drafts = [request(clip(name), number=n, is_final=False, draft=drafts[n]) for n, name in enumerate(CLIP_TEXTS)]
    assert [_words(r) for r in tiny.transcribe(batch(*with_drafts))] == [_words(r) for r in plain]


@pytest.mark.parametrize("is_final", [True, False])
@pytest.mark.parametrize("audio", [silence(3), _NOISE, _NOISE / 20], ids=["zeros", "noise", "faint noise"])
def test_audio_without_speech_has_no_words(tiny: WhisperEngine, audio: Samples, is_final: bool) -> None:
    assert text(tiny.transcribe(batch(request(audio, is_final=is_final)))[0]) == ""


def test_alternatives_differ_and_are_ranked(tiny: WhisperEngine) -> None:
    audio = (clip("number"), silence(2), clip("hold"))
    wanted = (3, 3, 2)
    requests = [request(a, number=i, num_alternatives=n) for i, (a, n) in enumerate(zip(audio, wanted, strict=True))]
    results = tiny.transcribe(batch(*requests))
    assert [len(r.alternatives) for r in results] == [3, 0, 2]
    for result in results:
        confidences = [a.confidence for a in result.alternatives]
        assert confidences == sorted(confidences, reverse=True)
        assert len({a.transcript for a in result.alternatives}) == len(result.alternatives)
    assert text(results[2]) == CLIP_TEXTS["hold"]
    assert tiny.transcribe(batch(requests[0])) == results[:1]


def test_timestamps_do_not_show_in_the_text() -> None:
    engine = WhisperEngine(WhisperSettings(model="tiny.en", device="cpu", timestamps=True))
    results = engine.transcribe(batch(request(clip("order"), word_details=True), request(clip("hold"), number=1)))
    assert [text(r) for r in results] == [CLIP_TEXTS["order"], CLIP_TEXTS["hold"]]
    assert [w.text for w in results[0].alternatives[0].words] == CLIP_TEXTS["order"].split()
    assert all(t < 50_256 for t in results[0].alternatives[0].tokens)


def test_it_runs_in_bfloat16() -> None:
    engine = WhisperEngine(WhisperSettings(model="tiny.en", device="cpu", precision="bfloat16"))
    assert engine.info.precision == "bfloat16"
    assert text(engine.transcribe(batch(request(clip("order"), is_final=False)))[0]) == CLIP_TEXTS["order"]


def test_it_warms_up_and_closes() -> None:
    engine = WhisperEngine(WhisperSettings(model="tiny.en", device="cpu"))
    engine.warm_up()
    engine.close()
    with pytest.raises(AttributeError):
        engine.warm_up()


def test_base_knows_languages(base: WhisperEngine) -> None:
    assert base.info.language_codes[0] == "en"
    assert {"es", "fr", "ru"} < set(base.info.language_codes)
    assert base.info.can_translate
    assert base.info.can_detect_language
    requests = [
        request(clip("order"), number=0, is_final=False, language_code="auto"),
        request(clip("order"), number=1, language_code="auto", allowed_language_codes=("de", "fr", "xx")),
        request(clip("hold"), number=2),
        request(clip("order"), number=3, is_final=False, language_code="tlh"),
    ]
    results = base.transcribe(batch(*requests))
    assert text(results[0]) == CLIP_TEXTS["order"]
    assert results[0].alternatives[0].language_code == "en"
    assert results[1].alternatives[0].language_code in {"de", "fr"}
    assert text(results[2]) == CLIP_TEXTS["hold"]
    assert "'tlh'" in (results[3].error or "")


def test_base_tells_how_likely_languages_are_when_asked(base: WhisperEngine) -> None:
    asked: dict[str, Any] = {"language_code": "auto", "detects_language": True}
    requests = [
        request(clip("order"), number=0, **asked),
        request(clip("order"), number=1, language_code="fr", detects_language=True),
        request(
            clip("order"), number=2, language_code="auto", allowed_language_codes=("de", "fr"), detects_language=True
        ),
        request(clip("order"), number=3, language_code="auto"),
    ]
    detected, named, allowed, not_asked = base.transcribe(batch(*requests))
    code, probability = detected.language_probabilities[0]
    assert code == "en"
    assert probability > 0.8
    assert named.language_probabilities == detected.language_probabilities
    assert named.alternatives[0].language_code == "fr"
    assert {code for code, _ in allowed.language_probabilities} == {"de", "fr"}
    assert sum(probability for _, probability in allowed.language_probabilities) == pytest.approx(1, abs=0.01)
    assert not_asked.language_probabilities == ()


def test_an_english_model_takes_auto_for_english(tiny: WhisperEngine) -> None:
    result = tiny.transcribe(batch(request(clip("hold"), language_code="auto")))[0]
    assert text(result) == CLIP_TEXTS["hold"]
    assert result.alternatives[0].language_code == "en"


@pytest.mark.data
def test_languages_are_detected_and_translated(base: WhisperEngine, recordings: Path) -> None:
    files = {"es": "demo-moreinfo.wav", "fr": "asterisk__vm-intro.wav", "ru": "dictate__record_help.wav"}
    found = {code: read_wav(recordings / "ivr" / code / name) for code, name in files.items()}
    requests = [request(a, number=n, is_final=False, language_code="auto") for n, a in enumerate(found.values())]
    results = base.transcribe(batch(*requests))
    assert [r.alternatives[0].language_code for r in results] == list(found)
    spanish = request(found["es"], language_code="es", task=Task.TRANSLATE)
    translated = text(base.transcribe(batch(spanish))[0]).lower()
    assert "operating" in translated
    assert "information" in translated
