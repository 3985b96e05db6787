"""Encoder and decoder with their weights, on one device in one precision."""

from dataclasses import dataclass, field

import torch

from pipeline.engines.whisper.decoder import Decoder
from pipeline.engines.whisper.encoder import Encoder
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
    """The precision a setting means: "auto" is float32 on a CPU and float16 on CUDA.

    Raises:
        EngineError: float16 is asked for on a CPU, which has no kernels for all of it.
    """
    if precision == "auto":
        return "float16" if device.type == "cuda" else "float32"
    if precision == "float16" and device.type == "cpu":
        raise EngineError("precision 'float16' needs CUDA; use 'bfloat16' or 'float32' on a CPU")
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
    state = {name: value.to(device, _DTYPES[precision]) for name, value in loaded.state.items()}
    try:
        parts.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise ModelIntegrityError(
            f"the weights do not fit the model ({str(error)[:_MAX_REASON]}); fetch the model again"
        ) from error
    encoder, decoder = parts["encoder"], parts["decoder"]
    assert isinstance(encoder, Encoder)
    assert isinstance(decoder, Decoder)
    return WhisperModel(
        spec=spec,
        vocabulary=loaded.vocabulary,
        encoder=encoder,
        decoder=decoder,
        device=device,
        precision=precision,
    )
