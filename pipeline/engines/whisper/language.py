"""Which language a row is in: one decoder step on <|startoftranscript|>, restricted to the languages allowed."""

from collections.abc import Collection, Sequence

import torch

from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.decoder import Decoder
from pipeline.engines.whisper.vocabulary import Vocabulary


def detect_languages(
    decoder: Decoder, vocabulary: Vocabulary, cross: CrossStates, allowed: Sequence[Collection[str]]
) -> list[str]:
    """The most probable language code of each row.

    Args:
        decoder: Of a multilingual model.
        vocabulary: Of the same model.
        cross: The rows' audio.
        allowed: The codes to choose from, one collection a row; empty means all.
    """
    cache = decoder.new_cache(cross, max_tokens=1)
    starts = torch.full((cross.num_rows, 1), vocabulary.start, device=cache.device)
    logits = decoder.logits(decoder.forward(starts, cache)[:, 0])
    codes = []
    for row, choice in zip(logits, allowed, strict=True):
        candidates = [code for code in vocabulary.language_ids if not choice or code in choice]
        ids = [vocabulary.language_ids[code] for code in candidates]
        codes.append(candidates[int(row[ids].argmax())])
    return codes
