"""Encoder and decoder with their weights, on one device in one precision."""

from dataclasses import dataclass, field

import torch
from torch import nn

from pipeline.engines.whisper.decoder import Decoder, DecoderLayer
from pipeline.engines.whisper.encoder import Encoder, EncoderLayer
from pipeline.engines.whisper.quantization import (
    Int8Linear,
    PackedLinear,
    has_fast_bfloat16,
    pack_linears,
    quantize_linears,
    supports_int8,
)
from pipeline.engines.whisper.sources import LoadedModel
from pipeline.engines.whisper.spec import ModelSpec
from pipeline.engines.whisper.vocabulary import Vocabulary
from pipeline.errors import EngineError, ModelIntegrityError

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_MAX_REASON = 300
"""Characters; torch names every single tensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperModel:
    """A model that is ready to run."""

    spec: ModelSpec
    vocabulary: Vocabulary = field(repr=False)
    encoder: Encoder = field(repr=False)
    decoder: Decoder = field(repr=False)
    device: torch.device
    precision: str


def choose_device(device: str) -> torch.device:
    """The device a setting means: "auto" is CUDA where there is a device.

    Raises:
        EngineError: CUDA is asked for and not there.
    """
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise EngineError("device 'cuda' is not available; install a CUDA build of torch, or set the device to 'cpu'")
    return torch.device("cuda" if available and device != "cpu" else "cpu")


def choose_precision(precision: str, device: torch.device) -> str:
    """The precision a setting means: "auto" is int8 on a CPU that has it, and float16 on CUDA.

    Raises:
        EngineError: The device has no kernels for the precision asked for.
    """
    on_cpu = device.type == "cpu"
    if precision == "auto":
        if not on_cpu:
            return "float16"
        return "int8" if supports_int8() else "float32"
    if precision == "float16" and on_cpu:
        raise EngineError("precision 'float16' needs CUDA; use 'int8', 'bfloat16' or 'float32' on a CPU")
    if precision == "int8" and not (on_cpu and supports_int8()):
        raise EngineError("precision 'int8' needs an x86 CPU; use 'float16' on CUDA, else 'float32'")
    return precision


def build_model(loaded: LoadedModel, device: torch.device, precision: str) -> WhisperModel:
    """Puts weights into modules.

    Raises:
        ModelIntegrityError: The weights do not fit the sizes that the model states.
    """
    spec = loaded.spec
    with torch.device("meta"):
        parts = torch.nn.ModuleDict({"encoder": Encoder(spec), "decoder": Decoder(spec)})
    parts.eval().requires_grad_(False)
    dtype = torch.float32 if precision == "int8" else _DTYPES[precision]
    state = {name: value.to(device, dtype) for name, value in loaded.state.items()}
    try:
        parts.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise ModelIntegrityError(
            f"the weights do not fit the model ({str(error)[:_MAX_REASON]}); fetch the model again"
        ) from error
    encoder, decoder = parts["encoder"], parts["decoder"]
    assert isinstance(encoder, Encoder)
    assert isinstance(decoder, Decoder)
    if precision == "int8":
        _quantize(encoder, decoder)
    return WhisperModel(
        spec=spec,
        vocabulary=loaded.vocabulary,
        encoder=encoder,
        decoder=decoder,
        device=device,
        precision=precision,
    )


def _quantize(encoder: Encoder, decoder: Decoder) -> None:
    """Turns a float32 model into an int8 one; where the CPU has bfloat16 in hardware, the encoder gets that."""
    if has_fast_bfloat16():
        encoder.to(torch.bfloat16)
        for heard in encoder.layers:
            assert isinstance(heard, EncoderLayer)
            assert isinstance(heard.ffn_in, nn.Linear)
            heard.ffn_in = PackedLinear(heard.ffn_in, "gelu")
            heard.has_gelu_inside = True
        pack_linears(encoder)
        for layer in decoder.layers:
            assert isinstance(layer, DecoderLayer)
            layer.cross.kv.to(torch.bfloat16)
            pack_linears(layer.cross)
    else:
        # Not the convolutions: quiet parts of a spectrum are lost in 8 bits (base took Spanish for Latin).
        quantize_linears(encoder.layers)
    quantize_linears(decoder)
    decoder.projection = Int8Linear(decoder.embeddings, None)
