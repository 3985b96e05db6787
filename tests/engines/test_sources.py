"""Weights come from packages and folders, are checked, and are the same from everywhere."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from pipeline.engines.whisper import ctranslate2, sources
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.engines.whisper.sources import EmbeddedModel, LoadedModel, check_digest, load_model
from pipeline.engines.whisper.vocabulary import load_vocabulary
from pipeline.errors import InvalidConfigError, ModelIntegrityError, ModelNotFoundError
from tests.engines.support import batch, clip, embedded_folder, request, text


def _assert_equal(first: LoadedModel, second: LoadedModel) -> None:
    assert first.spec == second.spec
    assert first.state.keys() == second.state.keys()
    assert all(torch.equal(first.state[name], second.state[name]) for name in first.state)
    assert first.vocabulary.language_ids == second.vocabulary.language_ids


@pytest.fixture
def ctranslate2_folder(tmp_path: Path) -> Path:
    for name in ("model.bin", "config.json", "tokenizer.json", "vocabulary.txt"):
        (tmp_path / name).symlink_to(embedded_folder("tiny.en") / name)
    return tmp_path


def test_ctranslate2_folder_equals_embedded(ctranslate2_folder: Path, loaded_tiny: LoadedModel) -> None:
    _assert_equal(load_model(str(ctranslate2_folder)), loaded_tiny)


def test_vocabulary_text_is_enough(ctranslate2_folder: Path, loaded_tiny: LoadedModel) -> None:
    (ctranslate2_folder / "tokenizer.json").unlink()
    vocabulary = load_vocabulary(ctranslate2_folder)
    tokens = list(range(0, vocabulary.end_of_text, 7))
    assert vocabulary.decode(tokens) == loaded_tiny.vocabulary.decode(tokens)
    assert vocabulary.first_timestamp == loaded_tiny.vocabulary.first_timestamp


def test_transformers_folder_equals_embedded(transformers_folder: Path, loaded_tiny: LoadedModel) -> None:
    _assert_equal(load_model(str(transformers_folder)), loaded_tiny)


def test_transformers_folder_transcribes(transformers_folder: Path, tiny: WhisperEngine) -> None:
    engine = WhisperEngine(WhisperSettings(model=str(transformers_folder), device="cpu"))
    one = batch(request(clip("hold"), word_details=True))
    assert engine.transcribe(one) == tiny.transcribe(one)
    assert text(engine.transcribe(one)[0])


def test_base_is_joined_from_its_parts() -> None:
    spec = load_model("base").spec
    assert (spec.width, spec.num_heads, spec.encoder_layers, spec.decoder_layers) == (512, 8, 6, 6)
    assert spec.vocabulary_size == 51_865
    assert spec.is_multilingual


def test_a_flipped_byte_is_found() -> None:
    data = bytearray(b"weights" * 100)
    expected = "7c5e1a" + "0" * 58
    with pytest.raises(ModelIntegrityError) as caught:
        check_digest("some-model", data, expected)
    assert expected in str(caught.value)

    model = bytearray((embedded_folder("tiny.en") / "model.bin").read_bytes())
    known = sources.EMBEDDED_MODELS["tiny.en"].sha256
    check_digest("tiny.en", model, known)
    model[12_345_678] ^= 1
    with pytest.raises(ModelIntegrityError, match=known):
        check_digest("tiny.en", model, known)


def test_embedded_weights_are_checked_on_load(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = sources.EMBEDDED_MODELS["tiny.en"].parts
    monkeypatch.setitem(sources.EMBEDDED_MODELS, "tiny.en", EmbeddedModel(parts=parts, sha256="0" * 64))
    with pytest.raises(ModelIntegrityError, match="1a5afae06a4db91c"):
        load_model("tiny.en")


@pytest.mark.parametrize("keep", [0, 3, 40, 5_000_000])
def test_a_cut_off_model_file_is_damaged(keep: int) -> None:
    data = bytearray((embedded_folder("tiny.en") / "model.bin").read_bytes()[:keep])
    with pytest.raises(ModelIntegrityError, match=r"model\.bin"):
        ctranslate2.read_variables(data)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = EmbeddedModel(parts=(("no_such_package_of_weights", "model.bin"),), sha256="0" * 64)
    monkeypatch.setitem(sources.EMBEDDED_MODELS, "tiny.en", absent)
    with pytest.raises(ModelNotFoundError, match=r"no-such-package-of-weights.*talkpath\[embedded\]"):
        load_model("tiny.en")


def test_an_unknown_name_says_what_was_tried() -> None:
    with pytest.raises(ModelNotFoundError, match=r"'enormous'.*tiny\.en, base.*folder.*hub id"):
        load_model("enormous")


def test_a_hub_id_that_cannot_be_had_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def offline(*_: object, **__: object) -> str:
        raise huggingface_hub.errors.LocalEntryNotFoundError("not in the cache")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    with pytest.raises(ModelNotFoundError, match=r"'someone/some-whisper'.*LocalEntryNotFoundError.*network"):
        load_model("someone/some-whisper")


def test_a_hub_id_is_loaded_from_its_download(
    monkeypatch: pytest.MonkeyPatch, transformers_folder: Path, loaded_tiny: LoadedModel
) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: str(transformers_folder))
    _assert_equal(load_model("someone/some-whisper"), loaded_tiny)


def test_folders_that_lack_something_say_what(tmp_path: Path, transformers_folder: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"lacks config\.json"):
        load_model(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(ModelNotFoundError, match="'bert'"):
        load_model(str(tmp_path))
    shutil.copy(transformers_folder / "config.json", tmp_path)
    with pytest.raises(ModelNotFoundError, match=r"model\.safetensors"):
        load_model(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00nonsense")
    with pytest.raises(ModelIntegrityError, match="damaged"):
        load_model(str(tmp_path))


def test_int8_variables_are_widened() -> None:
    weight = torch.randn(4, 8)
    scale = 127 / weight.abs().amax(1)
    variables = {
        "encoder/layer_0/ffn/linear_0/weight": (weight * scale[:, None]).round().to(torch.int8),
        "encoder/layer_0/ffn/linear_0/weight_scale": scale,
    }
    state = ctranslate2.to_state(variables)
    assert list(state) == ["encoder.layers.0.ffn_in.weight"]
    assert torch.allclose(state["encoder.layers.0.ffn_in.weight"], weight, atol=0.02)


@pytest.mark.parametrize(
    ("field", "value"),
    [("device", "tpu"), ("precision", "int3"), ("beam_size", 0), ("max_alternatives", 99), ("num_threads", 0)],
)
def test_settings_out_of_range_are_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidConfigError, match=str(value)):
        WhisperSettings(**{field: value})
