"""What an engine says of itself."""

from pipeline.engines.base import EngineInfo
from pipeline.engines.whisper.model import WhisperModel
from pipeline.engines.whisper.settings import WhisperSettings

_MAX_AUDIO_MS = 30_000
ENGLISH = "en"


def describe(settings: WhisperSettings, model: WhisperModel, num_lanes: int) -> EngineInfo:
    """An engine with these settings and this model."""
    multilingual = model.spec.is_multilingual
    others = [code for code in model.vocabulary.language_ids if code != ENGLISH] if multilingual else []
    return EngineInfo(
        model=settings.model,
        language_codes=(ENGLISH, *others),
        precision=model.precision,
        device=str(model.device),
        max_audio_ms=_MAX_AUDIO_MS,
        can_translate=multilingual,
        can_detect_language=multilingual,
        max_alternatives=settings.max_alternatives,
        num_lanes=num_lanes,
    )
