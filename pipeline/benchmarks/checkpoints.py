"""Hands the same weights to other programs: as a transformers model, and as a CTranslate2 folder."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from pipeline.engines.whisper.sources import EMBEDDED_MODELS, LoadedModel

_MODEL_FILE = "model.bin"
_RENAMINGS = (
    ("encoder.norm.", "encoder.layer_norm."),
    ("decoder.norm.", "decoder.layer_norm."),
    (".attention_norm.", ".self_attn_layer_norm."),
    (".cross_norm.", ".encoder_attn_layer_norm."),
    (".ffn_norm.", ".final_layer_norm."),
    (".attention.out.", ".self_attn.out_proj."),
    (".cross.out.", ".encoder_attn.out_proj."),
    (".cross.q.", ".encoder_attn.q_proj."),
    (".ffn_in.", ".fc1."),
    (".ffn_out.", ".fc2."),
)
_JOINED = ((".attention.qkv.", "qkv", ".self_attn"), (".cross.kv.", "kv", ".encoder_attn"))
"""Projections that this engine keeps as one: (name, letters of its parts, name of the parts' module)."""


def transformers_model(loaded: LoadedModel) -> Any:
    """The weights as transformers' WhisperForConditionalGeneration, float32, ready to generate."""
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration

    spec, vocabulary = loaded.spec, loaded.vocabulary
    ids: dict[str, Any] = {
        "decoder_start_token_id": vocabulary.start,
        "eos_token_id": vocabulary.end_of_text,
        "bos_token_id": vocabulary.end_of_text,
        "pad_token_id": vocabulary.end_of_text,
    }
    config = WhisperConfig(
        vocab_size=spec.vocabulary_size,
        num_mel_bins=spec.num_mel_bins,
        d_model=spec.width,
        encoder_layers=spec.encoder_layers,
        decoder_layers=spec.decoder_layers,
        encoder_attention_heads=spec.num_heads,
        decoder_attention_heads=spec.num_heads,
        encoder_ffn_dim=4 * spec.width,
        decoder_ffn_dim=4 * spec.width,
        max_target_positions=spec.max_tokens,
        **ids,
    )
    model = WhisperForConditionalGeneration(config)
    model.load_state_dict(transformers_state(loaded), strict=False)
    model.tie_weights()
    languages = {f"<|{code}|>": token for code, token in vocabulary.language_ids.items()}
    multilingual = {
        "lang_to_id": languages,
        "task_to_id": {task.value: token for task, token in vocabulary.task_ids.items()},
    }
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
        alignment_heads=[list(pair) for pair in spec.alignment_heads],
        suppress_tokens=list(spec.suppressed_ids),
        begin_suppress_tokens=list(spec.begin_suppressed_ids),
        no_timestamps_token_id=vocabulary.no_timestamps,
        is_multilingual=spec.is_multilingual,
        max_length=spec.max_tokens,
        **ids,
        **(multilingual if spec.is_multilingual else {}),
    )
    model.train(False)
    return model


def ctranslate2_folder(name: str, scratch: Path) -> Path:
    """A CTranslate2 folder with the weights of a model name; what has to be made for it lies in `scratch`."""
    if name in EMBEDDED_MODELS:
        return _joined(name, scratch)
    folder = Path(name).expanduser()
    if (folder / _MODEL_FILE).is_file():
        return folder
    return _converted(name, scratch)


def _joined(name: str, scratch: Path) -> Path:
    """The pieces of an embedded model as one file, with the files beside it."""
    paths = [_package_folder(package) / path for package, path in EMBEDDED_MODELS[name].parts]
    folder = scratch / "ctranslate2"
    folder.mkdir()
    for path in paths[0].parent.iterdir():
        if path.suffix in (".json", ".txt"):
            shutil.copy(path, folder)
    with (folder / _MODEL_FILE).open("wb") as joined:
        for path in paths:
            joined.write(path.read_bytes())
    return folder


def _package_folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0])


def _converted(name: str, scratch: Path) -> Path:
    from ctranslate2.converters import TransformersConverter

    folder = scratch / "ctranslate2"
    TransformersConverter(name, copy_files=["tokenizer.json"]).convert(str(folder), quantization="float32")
    return folder


def transformers_state(loaded: LoadedModel) -> dict[str, torch.Tensor]:
    """The weights under the names of transformers' WhisperForConditionalGeneration."""
    state = dict(loaded.state)
    for name in list(state):
        for joined, letters, module in _JOINED:
            if joined in name:
                _split(state, name, name.split(joined)[0] + module, letters)
    return {f"model.{_renamed(name)}": value for name, value in state.items()}


def _split(state: dict[str, torch.Tensor], name: str, module: str, letters: str) -> None:
    for letter, part in zip(letters, state.pop(name).chunk(len(letters)), strict=True):
        if not (letter == "k" and name.endswith(".bias")):  # Whisper's keys have no bias
            state[f"{module}.{letter}_proj.{name.rsplit('.', 1)[1]}"] = part.clone()


def _renamed(name: str) -> str:
    for ours, theirs in _RENAMINGS:
        name = name.replace(ours, theirs)
    if name == "decoder.embeddings":
        return "decoder.embed_tokens.weight"
    return name.removesuffix(".positions") + ".embed_positions.weight" if name.endswith(".positions") else name
