"""Which language a row is in: one decoder step on <|startoftranscript|>, restricted to the languages allowed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch

from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.decoder import Decoder
from pipeline.engines.whisper.model import WhisperModel
from pipeline.engines.whisper.vocabulary import Vocabulary
from pipeline.types import AUTO_LANGUAGE, DecodeHints, LanguageProbability

_NUM_TOLD = 5
_DECIMALS = 3
"""As many as do not depend on batch mates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """The language that a row is decoded in, and how likely which ones are, where that was asked."""

    code: str
    probabilities: tuple[LanguageProbability, ...] = ()


def languages_of(model: WhisperModel, cross: CrossStates, hints: Sequence[DecodeHints]) -> list[Languages]:
    """The languages of a multilingual model's rows, detected where their hints want that."""
    found = [Languages(code=row.language_code) for row in hints]
    asked = [i for i, row in enumerate(hints) if row.detects_language or row.language_code == AUTO_LANGUAGE]
    if asked:
        allowed = [hints[i].allowed_language_codes for i in asked]
        detected = detect_languages(model.decoder, model.vocabulary, cross.select(asked), allowed)
        for i, probabilities in zip(asked, detected, strict=True):
            code = probabilities[0][0] if found[i].code == AUTO_LANGUAGE else found[i].code
            found[i] = Languages(code=code, probabilities=probabilities)
    return found


def detect_languages(
    decoder: Decoder, vocabulary: Vocabulary, cross: CrossStates, allowed: Sequence[Collection[str]]
) -> list[tuple[LanguageProbability, ...]]:
    """The most probable languages of each row, most probable first; at least one.

    Args:
        decoder: Of a multilingual model.
        vocabulary: Of the same model.
        cross: The rows' audio.
        allowed: The codes to choose from, one collection a row; empty means all.
    """
    cache = decoder.new_cache(cross, max_tokens=1)
    starts = torch.full((cross.num_rows, 1), vocabulary.start, device=cache.device)
    logits = decoder.logits(decoder.forward(starts, cache)[:, 0])
    found = []
    for row, choice in zip(logits, allowed, strict=True):
        candidates = [code for code in vocabulary.language_ids if not choice or code in choice]
        ids = [vocabulary.language_ids[code] for code in candidates]
        best = row[ids].float().softmax(-1).topk(min(_NUM_TOLD, len(candidates)))
        told = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        found.append(tuple((candidates[index], round(probability, _DECIMALS)) for index, probability in told))
    return found
