"""What the engine tests share: clips, requests, and the embedded weights as a transformers folder."""

import json
import shutil
import wave
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import soxr

from pipeline.benchmarks.checkpoints import transformers_model, transformers_state
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.sources import EMBEDDED_MODELS, LoadedModel
from pipeline.types import CORE_SAMPLE_RATE_HZ, Batch, DecodeHints, DecodeRequest, DecodeResult, Samples

CLIP_TEXTS = {
    "order": "I would like to check the status of my order from last Tuesday.",
    "hold": "Please hold the line while I transfer your call.",
    "address": "The new address is 12 Garden Street in Springfield.",
}
_CLIPS = Path(__file__).parent / "data"
_ROOT = Path(__file__).parents[2]


def read_wav(path: Path) -> Samples:
    """The first channel of a 16-bit WAV file, float32 at 16 kHz."""
    with wave.open(str(path)) as file:
        assert file.getsampwidth() == 2
        raw = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2").reshape(-1, file.getnchannels())
        samples = raw[:, 0].astype(np.float32) / 32_768
        return soxr.resample(samples, file.getframerate(), CORE_SAMPLE_RATE_HZ)


def finals_alone(engine: WhisperEngine) -> Callable[[DecodeRequest], DecodeResult]:
    """Answers finals by the engine and interims with nothing, which is quicker."""

    def answer(asked: DecodeRequest) -> DecodeResult:
        return engine.transcribe(batch(asked))[0] if asked.is_final else DecodeResult(request_id=asked.request_id)

    return answer


@cache
def clip(name: str) -> Samples:
    return read_wav(_CLIPS / f"{name}.wav")


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * CORE_SAMPLE_RATE_HZ), dtype=np.float32)


_SEGMENTS = count()


def request(audio: Samples, *, number: int = 0, is_final: bool = True, **options: Any) -> DecodeRequest:
    """Of an utterance of its own, unless `segment_id` says that it goes on."""
    draft = options.pop("draft", ())
    segment_id = options.pop("segment_id", f"segment {next(_SEGMENTS)}")
    return DecodeRequest(
        request_id=f"call/{number}",
        session_id="call",
        segment_id=segment_id,
        channel_tag=1,
        revision=1,
        audio=audio,
        is_final=is_final,
        hints=DecodeHints(**options),
        draft=draft,
    )


def batch(*requests: DecodeRequest) -> Batch:
    longest_s = max(len(r.audio) for r in requests) / CORE_SAMPLE_RATE_HZ
    return Batch(requests=requests, padded_audio_s=longest_s * len(requests))


def text(result: DecodeResult) -> str:
    assert result.error is None
    return result.alternatives[0].transcript if result.alternatives else ""


def embedded_folder(name: str) -> Path:
    """Where the first part of an embedded model lies."""
    package, path = EMBEDDED_MODELS[name].parts[0]
    found = find_spec(package)
    assert found is not None
    assert found.submodule_search_locations
    return Path(found.submodule_search_locations[0], path).parent


def write_transformers_folder(loaded: LoadedModel, tokenizer: Path, folder: Path) -> None:
    """Saves loaded weights as transformers would."""
    model = transformers_model(loaded)
    missing = model.load_state_dict(transformers_state(loaded), strict=False)
    assert missing.missing_keys == ["proj_out.weight"]
    assert not missing.unexpected_keys
    model.tie_weights()
    model.save_pretrained(folder)
    shutil.copy(tokenizer, folder / "tokenizer.json")
    assert json.loads((folder / "config.json").read_text())["model_type"] == "whisper"
