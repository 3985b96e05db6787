"""Turns token candidates into hypotheses, with words where they are wanted."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.features import HOP_SAMPLES
from pipeline.engines.whisper.gates import confidence
from pipeline.engines.whisper.model import WhisperModel
from pipeline.engines.whisper.search import Candidate
from pipeline.engines.whisper.timing import AlignmentPlan, make_words, token_positions
from pipeline.engines.whisper.words import split_words
from pipeline.types import SAMPLES_PER_MS, Hypothesis

_POSITION_SAMPLES = 2 * HOP_SAMPLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A hypothesis that still has what its word times are made from."""

    hypothesis: Hypothesis
    log_probs: tuple[float, ...] = field(repr=False)
    """One a text token."""
    prompt: tuple[int, ...]
    frames: torch.Tensor = field(repr=False)
    """Raw log-mel frames of the audio."""
    num_samples: int
    """Length of the audio at 16 kHz."""


def make_hypotheses(
    model: WhisperModel, candidates: Sequence[Candidate], language_code: str, limit: int
) -> list[tuple[Hypothesis, tuple[float, ...]]]:
    """At most `limit` hypotheses with different transcripts, best first, each with its text tokens' log probabilities.

    Candidates without words are left out.
    """
    found: dict[str, tuple[Hypothesis, tuple[float, ...]]] = {}
    for candidate in candidates:
        end = model.vocabulary.end_of_text
        # The log probabilities may go on to the end of text, the tokens do not.
        pairs = [p for p in zip(candidate.tokens, candidate.log_probs, strict=False) if p[0] < end]
        tokens = tuple(token for token, _ in pairs)
        transcript = model.vocabulary.decode(tokens)
        if any(c.isalnum() for c in transcript) and transcript not in found:
            hypothesis = Hypothesis(
                transcript=transcript,
                confidence=confidence(candidate.mean_log_prob),
                language_code=language_code,
                tokens=tokens,
            )
            found[transcript] = (hypothesis, tuple(log_prob for _, log_prob in pairs))
    return list(found.values())[:limit]


def with_words(model: WhisperModel, cross: CrossStates, readings: Sequence[Reading]) -> list[Hypothesis]:
    """The hypotheses with their words, aligned together; `cross` has one row a reading."""
    if not readings:
        return []
    plans = [
        AlignmentPlan(
            prompt=reading.prompt,
            tokens=reading.hypothesis.tokens,
            num_positions=max(1, reading.num_samples // _POSITION_SAMPLES),
        )
        for reading in readings
    ]
    starts = token_positions(model.decoder, cross, plans, model.vocabulary.end_of_text)
    hypotheses = []
    for reading, positions in zip(readings, starts, strict=True):
        hypothesis = reading.hypothesis
        words = make_words(
            split_words(model.vocabulary, hypothesis.tokens, hypothesis.language_code),
            positions,
            reading.log_probs,
            reading.frames.cpu().numpy(),
            reading.num_samples // SAMPLES_PER_MS,
        )
        hypotheses.append(replace(hypothesis, words=words))
    return hypotheses
