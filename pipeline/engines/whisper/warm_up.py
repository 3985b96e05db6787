"""What an engine decodes before the first call, so that memory and kernels are ready for its shapes."""

from collections.abc import Iterator

import numpy as np

from pipeline.engines.whisper.silence import remembered_speech
from pipeline.types import CORE_SAMPLE_RATE_HZ, DecodeHints, DecodeRequest, Samples

_INTERIMS_S = (1.0, 5.0, 10.0, 25.0)
_FINALS_S = (5.0, 25.0)


def warm_up_requests() -> Iterator[DecodeRequest]:
    """Interims and finals of real speech, short and long."""
    lengths_s = [(length_s, False) for length_s in _INTERIMS_S] + [(length_s, True) for length_s in _FINALS_S]
    for number, (length_s, is_final) in enumerate(lengths_s):
        yield _request(_clip_of(length_s), number, is_final)


def _clip_of(length_s: float) -> Samples:
    """The remembered clip, cut or followed by silence."""
    audio = np.zeros(int(length_s * CORE_SAMPLE_RATE_HZ), dtype=np.float32)
    clip = remembered_speech()[: len(audio)]
    audio[: len(clip)] = clip
    return audio


def _request(audio: Samples, number: int, is_final: bool) -> DecodeRequest:
    return DecodeRequest(
        request_id=f"warm-up/{number}",
        session_id="warm-up",
        segment_id=str(number),
        channel_tag=1,
        revision=1,
        audio=audio,
        is_final=is_final,
        hints=DecodeHints(word_details=True),
    )
