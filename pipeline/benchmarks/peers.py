"""What Talkpath is measured against: stock transformers and faster-whisper, with the same weights, greedy, one request
after another, the whole padded window each time.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from pipeline.benchmarks.checkpoints import ctranslate2_folder, transformers_model
from pipeline.benchmarks.running import Hearing
from pipeline.benchmarks.variants import Setup
from pipeline.engines.whisper.silence import remembered_speech
from pipeline.engines.whisper.sources import load_model
from pipeline.types import CORE_SAMPLE_RATE_HZ, Samples

_LANGUAGE = "en"
_COMPUTE_TYPES = {"cpu": "int8", "cuda": "float16"}


class _OneByOne(ABC):
    """Decodes one request after another, as the peers' servers do."""

    _model: Any

    def warm_up(self) -> None:
        """See Transcriber."""
        self._text(remembered_speech())

    def transcribe(self, hearings: Sequence[Hearing]) -> list[str]:
        """See Transcriber."""
        return [self._text(hearing.audio) for hearing in hearings]

    def close(self) -> None:
        """See Transcriber."""
        del self._model

    @abstractmethod
    def _text(self, audio: Samples) -> str: ...


class StockTransformers(_OneByOne):
    """transformers' Whisper in float32: extract 30 s of features, generate, decode."""

    name = "stock transformers, float32"

    def __init__(self, setup: Setup) -> None:
        from transformers import WhisperFeatureExtractor, logging

        logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        torch.set_num_threads(setup.num_threads)
        loaded = load_model(setup.model)
        self._vocabulary = loaded.vocabulary
        self._device = torch.device(setup.device)
        self._model = transformers_model(loaded).to(self._device)
        num_bins = loaded.spec.num_mel_bins
        self._extractor: Any = WhisperFeatureExtractor(feature_size=num_bins)  # type: ignore[no-untyped-call]
        is_multilingual = loaded.spec.is_multilingual
        self._options = {"language": _LANGUAGE, "task": "transcribe"} if is_multilingual else {}

    def _text(self, audio: Samples) -> str:
        features = self._extractor(audio, sampling_rate=CORE_SAMPLE_RATE_HZ, return_tensors="pt").input_features
        with torch.inference_mode():
            tokens = self._model.generate(
                features.to(self._device), do_sample=False, num_beams=1, return_timestamps=False, **self._options
            )
        return self._vocabulary.decode(self._vocabulary.text_ids(tokens[0].tolist()))


class FasterWhisper(_OneByOne):
    """faster-whisper in its quickest precision, without its fallbacks and filters."""

    def __init__(self, setup: Setup, scratch: Path) -> None:
        from faster_whisper import WhisperModel

        self.name = self.name_on(setup.device)
        folder = ctranslate2_folder(setup.model, scratch)
        self._model = WhisperModel(
            str(folder),
            device=setup.device,
            compute_type=_COMPUTE_TYPES[setup.device],
            cpu_threads=setup.num_threads,
            num_workers=1,
        )

    @staticmethod
    def name_on(device: str) -> str:
        """As in tables."""
        return f"faster-whisper, {_COMPUTE_TYPES[device]}"

    def _text(self, audio: Samples) -> str:
        segments, _ = self._model.transcribe(
            audio,
            language=_LANGUAGE,
            beam_size=1,
            temperature=0.0,  # a single one: no fallback
            compression_ratio_threshold=None,
            log_prob_threshold=None,
            no_speech_threshold=None,
            condition_on_previous_text=False,
            without_timestamps=True,
            vad_filter=False,
        )
        return "".join(segment.text for segment in segments).strip()
