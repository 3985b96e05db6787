"""The same weights in transformers give the same states, scores and text."""

import json
from pathlib import Path

import pytest
import torch
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.features import LogMel, window
from pipeline.engines.whisper.model import WhisperModel, build_model
from pipeline.engines.whisper.sources import LoadedModel
from pipeline.types import Samples
from tests.engines.support import CLIP_TEXTS, batch, clip, read_wav, request, text

_CPU = torch.device("cpu")
_EXTRACTOR = WhisperFeatureExtractor()
_NUM_RECORDINGS = 3


@pytest.fixture(scope="module")
def oracle(transformers_folder: Path) -> WhisperForConditionalGeneration:
    return WhisperForConditionalGeneration.from_pretrained(transformers_folder).eval()


@pytest.fixture(scope="module")
def model(loaded_tiny: LoadedModel) -> WhisperModel:
    return build_model(loaded_tiny, _CPU, "float32")


def _oracle_text(oracle: WhisperForConditionalGeneration, engine: WhisperEngine, audio: Samples) -> str:
    features = _EXTRACTOR(audio, sampling_rate=16_000, return_tensors="pt").input_features
    with torch.inference_mode():
        tokens = oracle.generate(features, do_sample=False, num_beams=1)[0].tolist()
    vocabulary = engine._model.vocabulary
    return vocabulary.decode(vocabulary.text_ids(tokens))


@torch.inference_mode()
def test_states_and_logits_equal(oracle: WhisperForConditionalGeneration, model: WhisperModel) -> None:
    audio = torch.from_numpy(clip("order"))
    mel = window(LogMel(80, _CPU).frames(audio), 3_000)[None]
    states = model.encoder(mel)
    expected_states = oracle.model.encoder(mel).last_hidden_state
    torch.testing.assert_close(states, expected_states, atol=2e-3, rtol=0)

    tokens = torch.tensor([[model.vocabulary.start, model.vocabulary.no_timestamps, 314, 561, 588, 284]])
    expected = oracle(encoder_outputs=(states,), decoder_input_ids=tokens).logits
    cache = model.decoder.new_cache(model.decoder.cross_states(states), 8)
    at_once = model.decoder.logits(model.decoder(tokens, cache))
    torch.testing.assert_close(at_once, expected, atol=2e-3, rtol=0)

    cache = model.decoder.new_cache(model.decoder.cross_states(states), 8)
    step_by_step = [model.decoder.logits(model.decoder(tokens[:, i : i + 1], cache)) for i in range(6)]
    torch.testing.assert_close(torch.cat(step_by_step, dim=1), expected, atol=2e-3, rtol=0)


@torch.inference_mode()
def test_sequences_of_different_length_do_not_see_each_other(model: WhisperModel) -> None:
    audio = torch.from_numpy(clip("order"))
    states = model.encoder(window(LogMel(80, _CPU).frames(audio), 600)[None]).expand(2, -1, -1)
    start, plain, end = model.vocabulary.start, model.vocabulary.no_timestamps, model.vocabulary.end_of_text
    cache = model.decoder.new_cache(model.decoder.cross_states(states), 8)
    model.decoder(torch.tensor([[start, plain, 314, 561], [start, plain, end, end]]), cache, num_tokens=[4, 2])
    mixed = model.decoder(torch.tensor([[588], [314]]), cache)
    alone = model.decoder.new_cache(model.decoder.cross_states(states[:1]), 8)
    expected = model.decoder(torch.tensor([[start, plain, 314]]), alone)
    torch.testing.assert_close(mixed[1, 0], expected[0, 2], atol=1e-4, rtol=0)
    cache.select([1], [1])
    more = model.decoder(torch.tensor([[561, 588]]), cache)
    again = model.decoder(torch.tensor([[561, 588]]), alone)
    torch.testing.assert_close(more, again, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", [*CLIP_TEXTS, "number"])
def test_text_of_clips_equals(oracle: WhisperForConditionalGeneration, exact: WhisperEngine, name: str) -> None:
    ours = text(exact.transcribe(batch(request(clip(name))))[0])
    assert ours == _oracle_text(oracle, exact, clip(name))
    assert name not in CLIP_TEXTS or ours == CLIP_TEXTS[name]


@pytest.mark.data
def test_text_of_recordings_equals(
    oracle: WhisperForConditionalGeneration, exact: WhisperEngine, recordings: Path
) -> None:
    entries = map(json.loads, (recordings / "manifest.jsonl").read_text().splitlines())
    chosen = [e for e in entries if e["kind"] == "ivr-prompt" and e["language"] == "en" and 4 <= e["duration_s"] <= 12]
    for entry in chosen[:: max(1, len(chosen) // _NUM_RECORDINGS)][:_NUM_RECORDINGS]:
        audio = read_wav(recordings / entry["path"])
        assert text(exact.transcribe(batch(request(audio)))[0]) == _oracle_text(oracle, exact, audio), entry["path"]
