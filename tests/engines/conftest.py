"""Models are loaded once for all engine tests."""

from pathlib import Path

import pytest

from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.engines.whisper.sources import LoadedModel, load_model
from tests.engines.support import embedded_folder, write_transformers_folder
from tests.support.audio import require_data


@pytest.fixture(scope="session")
def tiny() -> WhisperEngine:
    return WhisperEngine(WhisperSettings(model="tiny.en", device="cpu"))


@pytest.fixture(scope="session")
def exact() -> WhisperEngine:
    """In the precision of the weights, to be compared with other implementations."""
    return WhisperEngine(WhisperSettings(model="tiny.en", device="cpu", precision="float32"))


@pytest.fixture(scope="session")
def base() -> WhisperEngine:
    return WhisperEngine(WhisperSettings(model="base", device="cpu"))


@pytest.fixture(scope="session")
def loaded_tiny() -> LoadedModel:
    return load_model("tiny.en")


@pytest.fixture(scope="session")
def transformers_folder(tmp_path_factory: pytest.TempPathFactory, loaded_tiny: LoadedModel) -> Path:
    folder = tmp_path_factory.mktemp("whisper-tiny.en")
    write_transformers_folder(loaded_tiny, embedded_folder("tiny.en") / "tokenizer.json", folder)
    return folder


@pytest.fixture(scope="session")
def recordings() -> Path:
    return require_data()
