"""Reads CTranslate2's model.bin from memory and names its variables as this engine's modules do.

The file is: binary version, model name, revision, then variables (name, shape, type, bytes), then aliases.
"""

import re
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from pipeline.engines.whisper.spec import ModelSpec, default_alignment_heads
from pipeline.errors import ModelIntegrityError

_BINARY_VERSION = 6
_SPEC_NAME = "WhisperSpec"
_DTYPES = {
    0: torch.float32,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.float16,
    5: torch.bfloat16,
}

_RENAMINGS = (
    (r"/layer_(\d+)/", r".layers.\1."),
    (r"/", "."),
    (r"\.self_attention\.layer_norm\.", ".attention_norm."),
    (r"\.self_attention\.linear_0\.", ".attention.qkv."),
    (r"\.self_attention\.linear_1\.", ".attention.out."),
    (r"\.attention\.layer_norm\.", ".cross_norm."),
    (r"\.attention\.linear_0\.", ".cross.q."),
    (r"\.attention\.linear_1\.", ".cross.kv."),
    (r"\.attention\.linear_2\.", ".cross.out."),
    (r"\.ffn\.layer_norm\.", ".ffn_norm."),
    (r"\.ffn\.linear_0\.", ".ffn_in."),
    (r"\.ffn\.linear_1\.", ".ffn_out."),
    (r"\.layer_norm\.", ".norm."),
    (r"\.gamma$", ".weight"),
    (r"\.beta$", ".bias"),
    (r"\.embeddings\.weight$", ".embeddings"),
    (r"\.position_encodings\.encodings$", ".positions"),
)


class _Reader:
    """A cursor over the bytes of a model.bin."""

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.offset = 0

    def number(self, code: str) -> int:
        """One little-endian number of a `struct` code."""
        value: int = struct.unpack_from(f"<{code}", self.data, self.offset)[0]
        self.offset += struct.calcsize(f"<{code}")
        return value

    def text(self) -> str:
        """A string with its length in front and a zero byte behind."""
        length = self.number("H")
        raw = self.data[self.offset : self.offset + length - 1]
        self.offset += length
        return raw.decode("utf-8")

    def variable(self) -> tuple[str, torch.Tensor]:
        """Name and values; the tensor is a view of the file's bytes."""
        name = self.text()
        shape = [self.number("I") for _ in range(self.number("B"))]
        dtype = _DTYPES[self.number("B")]
        num_bytes = self.number("I")
        if self.offset + num_bytes > len(self.data):
            raise struct.error(f"{name} ends behind the file")
        flat = torch.frombuffer(self.data, dtype=torch.uint8, count=num_bytes, offset=self.offset)
        self.offset += num_bytes
        if self.offset - num_bytes & (dtype.itemsize - 1):
            flat = flat.clone()  # views of wider types must be aligned
        return name, flat.view(dtype).reshape(shape)


def read_variables(data: bytearray) -> dict[str, torch.Tensor]:
    """Reads all variables under their CTranslate2 names, in the types of the file.

    Raises:
        ModelIntegrityError: The bytes are not a CTranslate2 Whisper model or end too early.
    """
    reader = _Reader(data)
    try:
        version = reader.number("I")
        if version != _BINARY_VERSION:
            raise ModelIntegrityError(
                f"model.bin has binary version {version}; only {_BINARY_VERSION} can be read: convert the model again"
            )
        name = reader.text()
        if name != _SPEC_NAME:
            raise ModelIntegrityError(f"model.bin holds a {name!r}, not a {_SPEC_NAME}; use a Whisper model")
        reader.number("I")  # the revision changes nothing in the layout of Whisper's variables
        return dict(reader.variable() for _ in range(reader.number("I")))
    except (struct.error, KeyError, UnicodeDecodeError, RuntimeError, ValueError) as error:
        raise ModelIntegrityError(
            f"model.bin is damaged after byte {reader.offset} of {len(data)} ({error}); fetch the model again"
        ) from error


def _dequantized(variables: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    value = variables[name]
    if value.is_floating_point():
        return value.float()
    scale = variables[f"{name}_scale"].float()
    return value.float() / (scale[:, None] if scale.dim() == 1 else scale)


def to_state(variables: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Weights as float32 under the names of this engine's modules; int8 and int16 weights are widened."""
    state = {}
    for name, value in variables.items():
        if value.dim() == 0 or name.endswith("_scale"):
            continue
        renamed = name
        for pattern, replacement in _RENAMINGS:
            renamed = re.sub(pattern, replacement, renamed)
        state[renamed] = _dequantized(variables, name)
    state.pop("decoder.projection.weight", None)  # Whisper's output projection is its token embedding
    return state


def to_spec(variables: Mapping[str, torch.Tensor], config: Mapping[str, Any]) -> ModelSpec:
    """Sizes from the shapes of the variables, token rules from CTranslate2's config.json."""

    def layers(part: str) -> int:
        numbers = [int(m.group(1)) for name in variables if (m := re.match(rf"{part}/layer_(\d+)/", name))]
        return max(numbers) + 1

    num_heads = int(np.asarray(variables["encoder/num_heads"]))
    decoder_layers = layers("decoder")
    vocabulary_size, width = variables["decoder/embeddings/weight"].shape
    heads = config.get("alignment_heads") or default_alignment_heads(decoder_layers, num_heads)
    return ModelSpec(
        num_mel_bins=variables["encoder/conv1/weight"].shape[1],
        width=width,
        num_heads=num_heads,
        encoder_layers=layers("encoder"),
        decoder_layers=decoder_layers,
        vocabulary_size=vocabulary_size,
        max_tokens=variables["decoder/position_encodings/encodings"].shape[0],
        alignment_heads=tuple((int(layer), int(head)) for layer, head in heads),
        suppressed_ids=_ids(config, "suppress_ids"),
        begin_suppressed_ids=_ids(config, "suppress_ids_begin"),
    )


def _ids(config: Mapping[str, Any], key: str) -> tuple[int, ...]:
    return tuple(int(i) for i in config.get(key) or () if int(i) >= 0)
