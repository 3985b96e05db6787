"""Finds the tokens of a batch of rows: greedy, with drafts to verify, or sampled at a temperature.

A row that ends leaves the batch, so that the others do not pay for it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from pipeline.engines.whisper.cache import CrossStates, DecoderCache
from pipeline.engines.whisper.decoder import Decoder
from pipeline.engines.whisper.drafts import Draft
from pipeline.engines.whisper.gates import is_looping
from pipeline.engines.whisper.rules import TokenRules
from pipeline.engines.whisper.scores import argmax, log_sum_exp
from pipeline.engines.whisper.vocabulary import Vocabulary

_MAX_DOUBTED_ENDS = 3
_MIN_RESUMED_LOG_PROB = -0.7
"""Mean of the tokens behind a doubted end; below it the text did end there."""
_MIN_RESUMED_TOKENS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """What to decode for one audio."""

    prompt: tuple[int, ...]
    """Begins with <|startoftranscript|>."""
    max_new_tokens: int
    """Budget, end of text included."""
    seed: int
    """Of the sampling; the same audio gets the same one."""
    min_tokens: int = 0
    """A greedy text that ends before it has so many is doubted: it goes on, if that reads well."""
    settled: tuple[int, ...] = field(default=(), repr=False)
    """Text tokens that the greedy text begins with, whatever the model would say now."""
    settled_log_probs: tuple[float, ...] = field(default=(), repr=False)
    """What they were believed with."""
    speech_score: float | None = None
    """See DecodeRequest."""
    may_loop: bool = False
    """The audio repeats itself: a text that does so is not cut short."""
    draft: tuple[int, ...] = field(default=(), repr=False)
    """Text tokens that may be right, behind the settled ones; greedy search verifies them in one step. Changes the
    cost, not the outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One token sequence found for a row."""

    tokens: tuple[int, ...] = field(repr=False)
    """Behind the prompt, without the end of text."""
    log_probs: tuple[float, ...] = field(repr=False)
    """One a token, and one for the end of text where it was reached."""

    @property
    def mean_log_prob(self) -> float:
        """Natural logarithm; 0 is certain."""
        return sum(self.log_probs) / max(1, len(self.log_probs))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOutcome:
    """What a search found for a row."""

    candidates: tuple[Candidate, ...]
    """Best first, at least one."""
    no_speech_prob: float
    """Probability that nobody speaks, 0 to 1; 0 where the model cannot tell."""


@dataclass(slots=True)
class _Live:
    """A row that is still being decoded."""

    index: int
    plan: RowPlan
    generator: torch.Generator | None
    no_speech_prob: float = 0.0
    tokens: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    ended: bool = False
    draft: Draft = field(init=False)
    doubted: list[tuple[int, float]] = field(default_factory=list)
    """Where the text ended too early: number of tokens, and the log probability of that end."""

    @property
    def doubts_end(self) -> bool:
        """Whether an end of text now would leave out what was said."""
        is_greedy = self.generator is None
        return is_greedy and len(self.tokens) < self.plan.min_tokens and len(self.doubted) < _MAX_DOUBTED_ENDS

    def __post_init__(self) -> None:
        self.draft = Draft(self.plan.draft)
        if self.generator is None:
            self.tokens = list(self.plan.settled)
            self.log_probs = list(self.plan.settled_log_probs)

    def proposal(self) -> Sequence[int]:
        """The draft's guess at what follows."""
        room = self.plan.max_new_tokens - len(self.tokens) - 1
        return self.draft.proposal(self.tokens[len(self.plan.settled) :], room)


class Search:
    """Greedy and sampled search with one set of rules."""

    def __init__(self, decoder: Decoder, vocabulary: Vocabulary, rules: TokenRules) -> None:
        self.decoder = decoder
        self.vocabulary = vocabulary
        self.rules = rules

    def decode(self, cross: CrossStates, plans: Sequence[RowPlan], temperature: float = 0.0) -> list[RowOutcome]:
        """Decodes rows greedily (temperature 0) or sampled; one outcome a plan, in order.

        `cross` has one row a plan. Outcomes do not depend on what else is in the batch.
        """
        rows = [_Live(i, plan, _generator(plan, temperature)) for i, plan in enumerate(plans)]
        cache = self.decoder.new_cache(cross, max(_max_tokens(plan) for plan in plans))
        drafts = _proposals(rows, temperature)
        per_row, no_speech = self.prefill(cache, [(*r.plan.prompt, *r.tokens) for r in rows], drafts)
        for row, prob in zip(rows, no_speech, strict=True):
            row.no_speech_prob = prob
        live = self._accept(cache, rows, drafts, per_row, temperature)
        while live:
            drafts = _proposals(live, temperature)
            per_row = self._run(cache, [[row.tokens[-1]] for row in live], drafts)[0]
            live = self._accept(cache, live, drafts, per_row, temperature)
        return [_outcome(row, self.vocabulary.end_of_text) for row in rows]

    def prefill(
        self, cache: DecoderCache, prompts: Sequence[Sequence[int]], drafts: Sequence[Sequence[int]]
    ) -> tuple[list[torch.Tensor], list[float]]:
        """Runs prompts, whatever text is settled behind them, and drafts.

        Returns:
            For each row the logits behind its prompt and behind each draft token, `(1 + draft, vocabulary)`, and
            its no-speech probability.
        """
        per_row, firsts = self._run(cache, prompts, drafts, with_first=True)
        return per_row, self._no_speech_probs(firsts)

    def _run(
        self,
        cache: DecoderCache,
        heads: Sequence[Sequence[int]],
        drafts: Sequence[Sequence[int]],
        *,
        with_first: bool = False,
    ) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Feeds each row's head and draft.

        Returns:
            For each row the logits behind its head and behind each draft token; and, if asked for, those behind the
            very first token of each row.
        """
        sequences = [[*head, *draft] for head, draft in zip(heads, drafts, strict=True)]
        longest = max(map(len, sequences))
        padded = [tokens + [self.vocabulary.end_of_text] * (longest - len(tokens)) for tokens in sequences]
        hidden = self.decoder.forward(
            torch.tensor(padded, device=cache.device), cache, num_tokens=[len(tokens) for tokens in sequences]
        )
        spans = [row[len(h) - 1 : len(s)] for row, h, s in zip(hidden, heads, sequences, strict=True)]
        firsts = hidden[:, 0] if with_first else hidden[:0, 0]
        logits = self.decoder.logits(torch.cat([firsts, *spans]))
        first_logits, *per_row = torch.split(logits, [len(firsts), *(len(span) for span in spans)])
        return per_row, first_logits

    def _no_speech_probs(self, logits: torch.Tensor) -> list[float]:
        if self.vocabulary.no_speech is None:
            return [0.0] * len(logits)
        log_probs = logits[:, self.vocabulary.no_speech] - log_sum_exp(logits)
        probs: list[float] = log_probs.exp().tolist()
        return probs

    def _accept(
        self,
        cache: DecoderCache,
        rows: Sequence[_Live],
        drafts: Sequence[Sequence[int]],
        per_row: Sequence[torch.Tensor],
        temperature: float,
    ) -> list[_Live]:
        """Appends what the search chooses, along each draft for as long as it agrees; returns the rows that go on."""
        written = [[*row.tokens, *draft[:n]] for row, draft in _zip(rows, drafts) for n in range(len(draft) + 1)]
        logits = self.rules.apply(torch.cat(list(per_row)), written)
        owners = [row for row, draft in _zip(rows, drafts) for _ in range(len(draft) + 1)]
        chosen = iter(_choose(logits, owners, temperature))
        spans = torch.split(logits, [len(draft) + 1 for draft in drafts])
        for row, draft, scores in zip(rows, drafts, spans, strict=True):
            self._follow(row, draft, scores, [next(chosen) for _ in range(len(draft) + 1)])
        kept = [i for i, row in enumerate(rows) if not row.ended]
        # What was stored of refused draft tokens is overwritten by the tokens that replace them.
        cache.lengths = [len(row.plan.prompt) + len(row.tokens) - 1 for row in rows]
        if kept and len(kept) < len(rows):
            cache.select(kept, kept)
        return [rows[i] for i in kept]

    def _follow(
        self, row: _Live, draft: Sequence[int], scores: torch.Tensor, chosen: Sequence[tuple[int, float]]
    ) -> None:
        num_accepted = 0
        for number, (token, log_prob) in enumerate(chosen):
            if token == self.vocabulary.end_of_text and row.doubts_end:
                row.doubted.append((len(row.tokens), log_prob))
                token, log_prob = _second_best(scores[number], token, log_prob)
            self._append(row, token, log_prob)
            # What follows a draft token is only known if the search would have chosen that token too.
            if row.ended or number == len(draft) or token != draft[number]:
                break
            num_accepted += 1
        row.draft.accept(num_accepted)

    def _append(self, row: _Live, token: int, log_prob: float) -> None:
        row.tokens.append(token)
        row.log_probs.append(log_prob)
        is_full = len(row.tokens) >= row.plan.max_new_tokens
        loops = not row.plan.may_loop and is_looping(row.tokens)
        row.ended = token == self.vocabulary.end_of_text or is_full or loops


def _zip(rows: Sequence[_Live], drafts: Sequence[Sequence[int]]) -> Iterator[tuple[_Live, Sequence[int]]]:
    return zip(rows, drafts, strict=True)


def _proposals(rows: Sequence[_Live], temperature: float) -> list[Sequence[int]]:
    if temperature > 0:
        return [()] * len(rows)
    return [row.proposal() for row in rows]


def _max_tokens(plan: RowPlan) -> int:
    return len(plan.prompt) + plan.max_new_tokens


def _generator(plan: RowPlan, temperature: float) -> torch.Generator | None:
    if temperature == 0:
        return None
    # On the CPU wherever the model is, and one a row: the same noise on every device and in every batch.
    return torch.Generator().manual_seed(plan.seed + round(temperature * 1000))


def _choose(logits: torch.Tensor, rows: Sequence[_Live], temperature: float) -> list[tuple[int, float]]:
    """Next token and its log probability for each row of logits."""
    if temperature == 0:
        tokens = argmax(logits)
    else:
        noise = torch.stack([_gumbel(row.generator, logits.shape[-1]) for row in rows]).to(logits.device)
        tokens = (logits / temperature + noise).argmax(-1)  # the Gumbel-max way to draw from a softmax
    log_probs = logits.gather(-1, tokens[:, None]).squeeze(-1) - log_sum_exp(logits)
    return list(zip(tokens.tolist(), log_probs.tolist(), strict=True))


def _gumbel(generator: torch.Generator | None, size: int) -> torch.Tensor:
    uniform = torch.rand(size, generator=generator).clamp(min=torch.finfo(torch.float32).tiny)
    return -(-uniform.log()).clamp(min=torch.finfo(torch.float32).tiny).log()


def _second_best(scores: torch.Tensor, token: int, log_prob: float) -> tuple[int, float]:
    best = scores[token].item()
    scores[token] = float("-inf")
    second = int(argmax(scores[None])[0])
    return second, log_prob + scores[second].item() - best


def _outcome(row: _Live, end_of_text: int) -> RowOutcome:
    tokens, log_probs = row.tokens, row.log_probs
    if row.doubted:
        end, end_log_prob = row.doubted[0]
        # The first token behind a doubted end is unlikely by nature; those that follow tell.
        behind = log_probs[end + 1 :]
        if sum(behind) < _MIN_RESUMED_LOG_PROB * len(behind) or len(behind) < _MIN_RESUMED_TOKENS:
            tokens, log_probs = tokens[:end], [*log_probs[:end], end_log_prob]
    if tokens and tokens[-1] == end_of_text:
        tokens = tokens[:-1]
    candidate = Candidate(tokens=tuple(tokens), log_probs=tuple(log_probs))
    return RowOutcome(candidates=(candidate,), no_speech_prob=row.no_speech_prob)


def token_budget(audio_s: float, prompt_tokens: int, max_tokens: int, tokens_per_s: float) -> int:
    """How many tokens an audio can possibly need, end of text included; a loop cannot run past it.

    Fast speech has 5 to 6 tokens a second in English and several times as many in scripts that take more than one
    token a character, so `tokens_per_s` is far above both.
    """
    fixed = 16  # punctuation, timestamps and a first word that was under way
    return min(max_tokens - prompt_tokens, fixed + math.ceil(audio_s * tokens_per_s))
