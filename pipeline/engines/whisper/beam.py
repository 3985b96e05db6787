"""Beam search over a batch of rows; the beams of a row share its audio."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from pipeline.engines.whisper.cache import CrossStates, DecoderCache
from pipeline.engines.whisper.search import Candidate, RowOutcome, RowPlan, Search


@dataclass(slots=True)
class _Beam:
    tokens: tuple[int, ...]
    log_probs: tuple[float, ...]
    total: float

    def extended(self, token: int, log_prob: float) -> "_Beam":
        return _Beam((*self.tokens, token), (*self.log_probs, log_prob), self.total + log_prob)

    def candidate(self, end_of_text: int) -> Candidate:
        ended = bool(self.tokens) and self.tokens[-1] == end_of_text
        return Candidate(tokens=self.tokens[:-1] if ended else self.tokens, log_probs=self.log_probs)


@dataclass(slots=True)
class _Row:
    index: int
    plan: RowPlan
    no_speech_prob: float
    beams: list[_Beam]
    finished: list[_Beam] = field(default_factory=list)

    def is_done(self, num_beams: int) -> bool:
        return len(self.finished) >= num_beams or len(self.beams[0].tokens) >= self.plan.max_new_tokens


def beam_search(search: Search, cross: CrossStates, plans: Sequence[RowPlan], num_beams: int) -> list[RowOutcome]:
    """Decodes rows with `num_beams` beams each; candidates are ranked by their mean log probability.

    A row is done when as many sequences have ended as it has beams (patience 1), or its budget is used up.
    """
    cache = search.decoder.new_cache(cross, max(len(p.prompt) + p.max_new_tokens for p in plans))
    rows = _first_beams(search, cache, plans, num_beams)
    live = _advance_cache(
        cache, rows, [list(range(i * num_beams, (i + 1) * num_beams)) for i in range(len(rows))], num_beams
    )
    while live:
        tokens = torch.tensor([[beam.tokens[-1]] for row in live for beam in row.beams], device=cache.device)
        hidden = search.decoder.forward(tokens, cache)
        written = [beam.tokens for row in live for beam in row.beams]
        log_probs = search.rules.apply(search.decoder.logits(hidden[:, -1]), written).log_softmax(-1)
        best = log_probs.topk(num_beams + 1, dim=-1)
        values, ids = best.values.tolist(), best.indices.tolist()
        origins = []
        for number, row in enumerate(live):
            span = slice(number * num_beams, (number + 1) * num_beams)
            parents = _extend(row, values[span], ids[span], search.vocabulary.end_of_text)
            origins.append([number * num_beams + parent for parent in parents])
        live = _advance_cache(cache, live, origins, num_beams)
    return [_outcome(row, search.vocabulary.end_of_text, num_beams) for row in rows]


def _first_beams(search: Search, cache: DecoderCache, plans: Sequence[RowPlan], num_beams: int) -> list[_Row]:
    per_row, no_speech = search.prefill(cache, [plan.prompt for plan in plans], [()] * len(plans))
    cache.expand(num_beams)
    rows = []
    for index, (plan, logits, prob) in enumerate(zip(plans, per_row, no_speech, strict=True)):
        best = search.rules.apply(logits, [()]).log_softmax(-1)[0].topk(num_beams + 1)
        row = _Row(index, plan, prob, [_Beam((), (), 0.0)])
        _extend(row, [best.values.tolist()], [best.indices.tolist()], search.vocabulary.end_of_text, num_beams)
        rows.append(row)
    return rows


def _extend(
    row: _Row,
    values: Sequence[Sequence[float]],
    ids: Sequence[Sequence[int]],
    end_of_text: int,
    num_beams: int | None = None,
) -> list[int]:
    """Replaces the beams of a row by their best continuations; returns the parent of each."""
    wanted = num_beams or len(row.beams)
    options = [
        (parent, beam.extended(token, value))
        for parent, beam in enumerate(row.beams)
        for value, token in zip(values[parent], ids[parent], strict=True)
    ]
    options.sort(key=lambda option: -option[1].total)
    parents: list[int] = []
    beams: list[_Beam] = []
    for parent, beam in options:
        if beam.tokens[-1] == end_of_text:
            row.finished.append(beam)
        else:
            parents.append(parent)
            beams.append(beam)
            if len(beams) == wanted:
                break
    row.beams = beams
    return parents


def _advance_cache(
    cache: DecoderCache, rows: Sequence[_Row], origins: Sequence[Sequence[int]], num_beams: int
) -> list[_Row]:
    """Moves the cache to the new beams and drops the rows that are done."""
    kept = [i for i, row in enumerate(rows) if not row.is_done(num_beams)]
    if kept:
        cache.select([sequence for i in kept for sequence in origins[i]], kept)
    return [rows[i] for i in kept]


def _outcome(row: _Row, end_of_text: int, num_beams: int) -> RowOutcome:
    found = list(row.finished)
    if len(found) < num_beams:
        found += row.beams[: num_beams - len(found)]
    candidates = [beam.candidate(end_of_text) for beam in found]
    candidates.sort(key=lambda candidate: -candidate.mean_log_prob)
    return RowOutcome(candidates=tuple(candidates), no_speech_prob=row.no_speech_prob)
