"""What an engine asks of a request before it costs anything: is it possible, and is there sound in it?"""

import math
from collections.abc import Sequence

import numpy as np

from pipeline.engines.base import EngineInfo
from pipeline.types import AUTO_LANGUAGE, CORE_SAMPLE_RATE_HZ, SAMPLES_PER_MS, DecodeHints, DecodeRequest, Samples, Task

_LEVEL_WINDOW_SAMPLES = CORE_SAMPLE_RATE_HZ // 50
"""20 ms."""
_SILENCE_DBFS = -200.0
_NAMED_LANGUAGES = 8


def refusal(request: DecodeRequest, info: EngineInfo) -> str | None:
    """Why an engine cannot decode a request, or None. Never holds words of the call."""
    if request.audio.ndim != 1 or not np.isfinite(request.audio).all():
        return f"audio of shape {request.audio.shape} must be one row of finite samples; check the stream's decoder"
    audio_ms = len(request.audio) // SAMPLES_PER_MS
    if audio_ms > info.max_audio_ms:
        return f"audio of {audio_ms} ms is longer than {info.max_audio_ms} ms; send it in shorter segments"
    return _language_refusal(request.hints, info)


def _language_refusal(hints: DecodeHints, info: EngineInfo) -> str | None:
    known = info.language_codes
    if hints.task is Task.TRANSLATE and not info.can_translate:
        return f"model {info.model!r} cannot translate; use a multilingual model, such as 'base'"
    if hints.language_code != AUTO_LANGUAGE:
        if hints.language_code not in known:
            return f"model {info.model!r} does not know language {hints.language_code!r}; use {_some(known)}"
        return None
    allowed = hints.allowed_language_codes
    if allowed and not set(allowed) & set(known):
        return f"model {info.model!r} knows none of the languages allowed ({_some(allowed)}); allow {_some(known)}"
    return None


def _some(codes: Sequence[str]) -> str:
    more = len(codes) - _NAMED_LANGUAGES
    return ", ".join(codes[:_NAMED_LANGUAGES]) + (f" or {more} more" if more > 0 else "")


def level_dbfs(samples: Samples) -> float:
    """Root mean square of the loudest 20 ms, in dB of full scale."""
    count = len(samples) // _LEVEL_WINDOW_SAMPLES
    if count == 0:
        return _SILENCE_DBFS
    windows = samples[: count * _LEVEL_WINDOW_SAMPLES].reshape(count, _LEVEL_WINDOW_SAMPLES)
    loudest = float(np.square(windows, dtype=np.float64).mean(axis=1).max())
    return 10.0 * math.log10(loudest) if loudest > 0 else _SILENCE_DBFS
