"""Decodes rows until the gates believe them: interims once, finals with rising temperatures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from pipeline.engines.whisper.beam import beam_search
from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.gates import (
    FALLBACK_TEMPERATURES,
    GateThresholds,
    Verdict,
    judge,
    loop_cut,
    repeats_itself,
)
from pipeline.engines.whisper.repetition import count_repeats
from pipeline.engines.whisper.search import Candidate, RowOutcome, RowPlan, Search
from pipeline.types import DropReason

_MAX_BEHIND_LOOP = 2
"""Tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is believed of a row."""

    candidates: tuple[Candidate, ...] = ()
    """Best first; none: no words."""
    dropped: DropReason | None = None
    """Why there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    outcome: RowOutcome
    verdict: Verdict

    @property
    def merit(self) -> float:
        return self.outcome.candidates[0].mean_log_prob


class Attempts:
    """A search behind its gates."""

    def __init__(self, search: Search, thresholds: GateThresholds) -> None:
        self._search = search
        self._thresholds = thresholds

    def interims(self, cross: CrossStates, plans: Sequence[RowPlan]) -> list[tuple[Candidate, ...]]:
        """Decodes greedily, once; a row that fails the gates has no candidates."""
        outcomes = self._search.decode(cross, plans)
        attempts = [self._judged(o, _for_interims(self._given(p))) for o, p in zip(outcomes, plans, strict=True)]
        return [a.outcome.candidates if a.verdict is Verdict.ACCEPTED else () for a in attempts]

    def finals(
        self, cross: CrossStates, plans: Sequence[RowPlan], num_beams: int, frames: Sequence[torch.Tensor] = ()
    ) -> list[Found]:
        """Decodes with beams; rows that fail are sampled again, alone among themselves.

        `frames` are the log-mel frames of each row; where they repeat themselves, so may the text.
        """
        if num_beams > 1:
            outcomes = beam_search(self._search, cross, plans, num_beams)
        else:
            outcomes = self._search.decode(cross, plans)
        thresholds = [self._given(plan) for plan in plans]
        attempts = [[self._judged(o, t)] for o, t in zip(outcomes, thresholds, strict=True)]
        for i, tried in enumerate(attempts):
            # What was accepted does not loop.
            may_loop = frames and tried[0].verdict is not Verdict.ACCEPTED and self._loops(tried[0])
            if may_loop and (num_repeats := count_repeats(frames[i])):
                attempts[i] = [self._repeating(cross.select([i]), plans[i], thresholds[i], num_repeats)]
        for temperature in FALLBACK_TEMPERATURES:
            doubtful = [i for i, tried in enumerate(attempts) if tried[-1].verdict is Verdict.DOUBTFUL]
            if not doubtful:
                break
            again = self._search.decode(cross.select(doubtful), [plans[i] for i in doubtful], temperature)
            for i, outcome in zip(doubtful, again, strict=True):
                attempts[i].append(self._judged(outcome, thresholds[i]))
        return [self._settled(tried, t) for tried, t in zip(attempts, thresholds, strict=True)]

    def _loops(self, attempt: _Attempt) -> bool:
        best = attempt.outcome.candidates[0]
        return repeats_itself(self._thresholds, self._search.vocabulary.decode(best.tokens), best.tokens)

    def _repeating(self, cross: CrossStates, plan: RowPlan, thresholds: GateThresholds, num_repeats: int) -> _Attempt:
        """Decodes a row whose audio says the same so often."""
        outcome = self._search.decode(cross, [replace(plan, may_loop=True, draft=())])[0]
        candidates = tuple(_with_loop_cut(candidate, num_repeats) for candidate in outcome.candidates)
        return self._judged(replace(outcome, candidates=candidates), thresholds, may_loop=True)

    def _given(self, plan: RowPlan) -> GateThresholds:
        return self._thresholds.given(plan.speech_score)

    def _judged(self, outcome: RowOutcome, thresholds: GateThresholds, *, may_loop: bool = False) -> _Attempt:
        best = outcome.candidates[0]
        text = self._search.vocabulary.decode(best.tokens)
        log_prob, no_speech = best.mean_log_prob, outcome.no_speech_prob
        verdict = judge(thresholds, text, best.tokens, log_prob, no_speech, may_loop=may_loop)
        return _Attempt(outcome=outcome, verdict=verdict)

    def _settled(self, tried: Sequence[_Attempt], thresholds: GateThresholds) -> Found:
        last = tried[-1]
        if last.verdict is Verdict.NO_SPEECH:
            return Found(dropped=DropReason.NO_SPEECH)
        if last.verdict is Verdict.ACCEPTED:
            return Found(candidates=last.outcome.candidates)
        best = max(tried, key=self._preference)
        if best.outcome.no_speech_prob > thresholds.max_doubtful_no_speech_prob:
            return Found(dropped=DropReason.UNLIKELY)
        return Found(candidates=tuple(_with_loop_cut(candidate, 1) for candidate in best.outcome.candidates))

    def _preference(self, attempt: _Attempt) -> tuple[bool, float]:
        return (not self._loops(attempt), attempt.merit)


def _for_interims(thresholds: GateThresholds) -> GateThresholds:
    return replace(thresholds, min_mean_log_prob=thresholds.min_interim_log_prob)


def _with_loop_cut(candidate: Candidate, num_kept: int) -> Candidate:
    tokens = candidate.tokens
    # The last of many repeats may end in a full stop.
    shorter = (loop_cut(tokens[: len(tokens) - behind], num_kept) for behind in range(_MAX_BEHIND_LOOP + 1))
    kept = next((k for behind, k in enumerate(shorter) if k < len(tokens) - behind), len(tokens))
    return Candidate(tokens=candidate.tokens[:kept], log_probs=candidate.log_probs[:kept])
