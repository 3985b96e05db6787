"""Reads a transformers Whisper folder (config.json and safetensors) into this engine's names."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from pipeline.engines.whisper.spec import ModelSpec, default_alignment_heads
from pipeline.errors import ModelIntegrityError, ModelNotFoundError

_RENAMINGS = (
    (r"^model\.", ""),
    (r"\.embed_tokens\.weight$", ".embeddings"),
    (r"\.embed_positions\.weight$", ".positions"),
    (r"coder\.layer_norm\.", "coder.norm."),
    (r"\.self_attn_layer_norm\.", ".attention_norm."),
    (r"\.encoder_attn_layer_norm\.", ".cross_norm."),
    (r"\.final_layer_norm\.", ".ffn_norm."),
    (r"\.self_attn\.", ".attention."),
    (r"\.encoder_attn\.", ".cross."),
    (r"\.out_proj\.", ".out."),
    (r"\.([qkv])_proj\.", r".\1."),
    (r"\.fc1\.", ".ffn_in."),
    (r"\.fc2\.", ".ffn_out."),
)


def read_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a folder's safetensors, sharded or not, under their transformers names.

    Raises:
        ModelNotFoundError: There are no safetensors.
        ModelIntegrityError: A file cannot be read.
    """
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        files = sorted({folder / name for name in json.loads(index.read_text())["weight_map"].values()})
    else:
        files = [folder / "model.safetensors"]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ModelNotFoundError(
            f"{folder} lacks {', '.join(missing)}; save the model with transformers' save_pretrained (safetensors)"
        )
    tensors: dict[str, torch.Tensor] = {}
    for file in files:
        try:
            tensors |= load_file(file)
        except SafetensorError as error:
            raise ModelIntegrityError(f"{file} is damaged ({error}); fetch the model again") from error
    return tensors


def to_state(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights as float32 under the names of this engine's modules, query, key and value joined."""
    state = {}
    for name, value in tensors.items():
        renamed = name
        for pattern, replacement in _RENAMINGS:
            renamed = re.sub(pattern, replacement, renamed)
        state[renamed] = value.float()
    state.pop("proj_out.weight", None)  # the same as the token embedding
    for name in [n for n in state if re.search(r"\.attention\.q\.weight$", n)]:
        _join(state, name.removesuffix("q.weight"), "qkv")
    for name in [n for n in state if re.search(r"\.cross\.k\.weight$", n)]:
        _join(state, name.removesuffix("k.weight"), "kv")
    return state


def _join(state: dict[str, torch.Tensor], prefix: str, letters: str) -> None:
    weights = [state.pop(f"{prefix}{letter}.weight") for letter in letters]
    # Whisper's key projections have no bias.
    biases = [state.pop(f"{prefix}{letter}.bias", torch.zeros(len(weights[0]))) for letter in letters]
    state[f"{prefix}{letters}.weight"] = torch.cat(weights)
    state[f"{prefix}{letters}.bias"] = torch.cat(biases)


def to_spec(config: Mapping[str, Any], generation: Mapping[str, Any]) -> ModelSpec:
    """Sizes from config.json; token rules from generation_config.json, else from config.json."""

    def ids(key: str) -> tuple[int, ...]:
        return tuple(int(i) for i in generation.get(key) or config.get(key) or () if int(i) >= 0)

    num_heads, decoder_layers = int(config["decoder_attention_heads"]), int(config["decoder_layers"])
    heads = generation.get("alignment_heads") or default_alignment_heads(decoder_layers, num_heads)
    return ModelSpec(
        num_mel_bins=int(config["num_mel_bins"]),
        width=int(config["d_model"]),
        num_heads=num_heads,
        encoder_layers=int(config["encoder_layers"]),
        decoder_layers=decoder_layers,
        vocabulary_size=int(config["vocab_size"]),
        max_tokens=int(config["max_target_positions"]),
        alignment_heads=tuple((int(layer), int(head)) for layer, head in heads),
        suppressed_ids=ids("suppress_tokens"),
        begin_suppressed_ids=ids("begin_suppress_tokens"),
    )
