"""Reads a text and what hints propose in its place along with the audio, and takes what the audio allows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from pipeline.engines.whisper.biasing import HintBook, Proposal, propose
from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.gates import confidence
from pipeline.engines.whisper.model import WhisperModel
from pipeline.engines.whisper.scores import log_sum_exp
from pipeline.engines.whisper.search import Candidate
from pipeline.engines.whisper.words import split_words

_CERTAIN = 0.75
"""Of the least likely token of a word: from here on it may count as stable, and stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A word and the tokens `[first, end)` of the candidate that spell it."""

    text: str = field(repr=False)
    first: int
    end: int
    is_certain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Tokens `[first, end)` of a candidate and what may stand there."""

    first: int
    end: int
    tokens: tuple[int, ...] = field(repr=False)
    bonus: float

    def applied(self, tokens: Sequence[int]) -> tuple[int, ...]:
        return (*tokens[: self.first], *self.tokens, *tokens[self.end :])


def rescored(
    model: WhisperModel,
    cross: CrossStates,
    prompt: Sequence[int],
    candidate: Candidate,
    book: HintBook,
    language_code: str,
) -> Candidate:
    """The candidate with the phrases that the audio allows; the same one where it allows none.

    Args:
        model: Whose decoder reads.
        cross: The audio, one row.
        prompt: What came before the candidate's tokens.
        candidate: What the search found and the gates believed.
        book: The call's phrases.
        language_code: Decides what a word is.
    """
    places = _places(model, candidate, language_code)
    proposals = propose(book, [place.text for place in places], [place.is_certain for place in places])
    if not proposals:
        return candidate
    changes = [_change(model, places, proposal) for proposal in proposals]
    tail = [model.vocabulary.end_of_text] if len(candidate.log_probs) > len(candidate.tokens) else []
    texts = [candidate.tokens, *(change.applied(candidate.tokens) for change in changes)]
    start = min(change.first for change in changes)
    read = _read(model, cross, [[*prompt, *text, *tail] for text in texts], len(prompt) + start)
    gains = [
        (change.bonus + sum(scores) - sum(read[0]), change) for change, scores in zip(changes, read[1:], strict=True)
    ]
    taken = _compatible([(gain, change) for gain, change in gains if gain > 0])
    if not taken:
        return candidate
    tokens = candidate.tokens
    for change in sorted(taken, key=lambda change: -change.first):
        tokens = change.applied(tokens)
    if len(taken) == 1:
        scores = read[1 + changes.index(taken[0])]
    else:
        scores = _read(model, cross, [[*prompt, *tokens, *tail]], len(prompt) + start)[0]
    return Candidate(tokens=tokens, log_probs=(*candidate.log_probs[:start], *scores))


def _places(model: WhisperModel, candidate: Candidate, language_code: str) -> list[_Place]:
    end_of_text = model.vocabulary.end_of_text
    positions = [i for i, token in enumerate(candidate.tokens) if token < end_of_text]
    spans = split_words(model.vocabulary, [candidate.tokens[i] for i in positions], language_code)
    places = []
    for span in spans:
        first, end = positions[span.first], positions[span.end - 1] + 1
        lowest = min(candidate.log_probs[first:end])
        places.append(_Place(text=span.text, first=first, end=end, is_certain=confidence(lowest) >= _CERTAIN))
    return places


def _change(model: WhisperModel, places: Sequence[_Place], proposal: Proposal) -> _Change:
    first, last = places[proposal.first], places[proposal.end - 1]
    return _Change(
        first=first.first,
        end=last.end,
        tokens=model.vocabulary.encode(f" {proposal.text}"),
        bonus=proposal.bonus,
    )


def _compatible(gains: Sequence[tuple[float, _Change]]) -> list[_Change]:
    """The best of those that want the same words."""
    taken: list[_Change] = []
    for _, change in sorted(gains, key=lambda pair: -pair[0]):
        if all(change.end <= other.first or other.end <= change.first for other in taken):
            taken.append(change)
    return taken


def _read(
    model: WhisperModel, cross: CrossStates, sequences: Sequence[Sequence[int]], start: int
) -> list[tuple[float, ...]]:
    """Log probability of each token from `start` on, for each sequence."""
    decoder = model.decoder
    longest = max(map(len, sequences))
    padded = [[*s, *[model.vocabulary.end_of_text] * (longest - len(s))] for s in sequences]
    cache = decoder.new_cache(cross.select([0] * len(sequences)), longest)
    hidden = decoder.forward(torch.tensor(padded, device=cache.device), cache)
    found = []
    for states, sequence in zip(hidden, sequences, strict=True):
        logits = decoder.logits(states[start - 1 : len(sequence) - 1])
        chosen = torch.tensor(list(sequence[start:]), device=cache.device)
        log_probs = logits.gather(-1, chosen[:, None]).squeeze(-1) - log_sum_exp(logits)
        found.append(tuple(log_probs.tolist()))
    return found
