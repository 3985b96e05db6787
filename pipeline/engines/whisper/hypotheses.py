"""Turns token candidates into hypotheses, with words where they are wanted."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.features import HOP_SAMPLES
from pipeline.engines.whisper.gates import confidence
from pipeline.engines.whisper.model import WhisperModel
from pipeline.engines.whisper.search import Candidate
from pipeline.engines.whisper.timing import align, make_words
from pipeline.engines.whisper.words import split_words
from pipeline.types import SAMPLES_PER_MS, Hypothesis

_POSITION_SAMPLES = 2 * HOP_SAMPLES


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardAudio:
    """What word times are made from."""

    frames: torch.Tensor = field(repr=False)
    """Raw log-mel frames, `(mel bins, frames)`."""
    num_samples: int
    """At 16 kHz."""


def make_hypotheses(
    model: WhisperModel, candidates: Sequence[Candidate], language_code: str, limit: int, *, is_final: bool
) -> list[Hypothesis]:
    """At most `limit` hypotheses with different transcripts, best first; candidates without words are left out."""
    found: dict[str, Hypothesis] = {}
    for candidate in candidates:
        tokens = tuple(token for token in candidate.tokens if token < model.vocabulary.end_of_text)
        transcript = model.vocabulary.decode(tokens)
        if any(c.isalnum() for c in transcript) and transcript not in found:
            found[transcript] = Hypothesis(
                transcript=transcript,
                confidence=confidence(candidate.mean_log_prob),
                language_code=language_code,
                tokens=tokens,
                certainties=() if is_final else _certainties(model, candidate, language_code, len(transcript.split())),
            )
    return list(found.values())[:limit]


def _certainties(model: WhisperModel, candidate: Candidate, language_code: str, num_words: int) -> tuple[float, ...]:
    """The lowest token probability of each word; empty where the words are not those between spaces."""
    pairs = zip(candidate.tokens, candidate.log_probs, strict=False)
    text = [(token, log_prob) for token, log_prob in pairs if token < model.vocabulary.end_of_text]
    spans = split_words(model.vocabulary, [token for token, _ in text], language_code)
    if len(spans) != num_words:
        return ()
    return tuple(confidence(min(log_prob for _, log_prob in text[span.first : span.end])) for span in spans)


def settle(
    model: WhisperModel,
    cross: CrossStates,
    prompt: Sequence[int],
    hypothesis: Hypothesis,
    audio: HeardAudio,
    *,
    with_words: bool,
) -> Hypothesis:
    """A final's best hypothesis with the confidence of its text and, if wanted, its words; `cross` has one row."""
    num_positions = max(1, audio.num_samples // _POSITION_SAMPLES) if with_words else 0
    tokens = [*hypothesis.tokens, model.vocabulary.end_of_text]
    alignment = align(model.decoder, cross, prompt, tokens, num_positions)
    read = Candidate(tokens=hypothesis.tokens, log_probs=alignment.log_probs)
    settled = replace(
        hypothesis,
        confidence=confidence(read.mean_log_prob),
        certainties=_certainties(model, read, hypothesis.language_code, len(hypothesis.transcript.split())),
    )
    if alignment.starts is None:
        return settled
    words = make_words(
        split_words(model.vocabulary, hypothesis.tokens, hypothesis.language_code),
        alignment.starts,
        alignment.log_probs,
        audio.frames.cpu().numpy(),
        audio.num_samples // SAMPLES_PER_MS,
    )
    return replace(settled, words=words)
