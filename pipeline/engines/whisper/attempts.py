"""Decodes rows until the gates believe them: interims once, finals with rising temperatures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.engines.whisper.beam import beam_search
from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.gates import FALLBACK_TEMPERATURES, GateThresholds, Verdict, judge, loop_cut
from pipeline.engines.whisper.search import Candidate, RowOutcome, RowPlan, Search
from pipeline.types import DropReason


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

    def finals(self, cross: CrossStates, plans: Sequence[RowPlan], num_beams: int) -> list[Found]:
        """Decodes with beams; rows that fail are sampled again, alone among themselves."""
        if num_beams > 1:
            outcomes = beam_search(self._search, cross, plans, num_beams)
        else:
            outcomes = self._search.decode(cross, plans)
        thresholds = [self._given(plan) for plan in plans]
        attempts = [[self._judged(o, t)] for o, t in zip(outcomes, thresholds, strict=True)]
        for temperature in FALLBACK_TEMPERATURES:
            doubtful = [i for i, tried in enumerate(attempts) if tried[-1].verdict is Verdict.DOUBTFUL]
            if not doubtful:
                break
            again = self._search.decode(cross.select(doubtful), [plans[i] for i in doubtful], temperature)
            for i, outcome in zip(doubtful, again, strict=True):
                attempts[i].append(self._judged(outcome, thresholds[i]))
        return [self._settled(tried, t) for tried, t in zip(attempts, thresholds, strict=True)]

    def _given(self, plan: RowPlan) -> GateThresholds:
        return self._thresholds.given(plan.speech_score)

    def _judged(self, outcome: RowOutcome, thresholds: GateThresholds) -> _Attempt:
        best = outcome.candidates[0]
        text = self._search.vocabulary.decode(best.tokens)
        verdict = judge(thresholds, text, best.tokens, best.mean_log_prob, outcome.no_speech_prob)
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
        return Found(candidates=tuple(_without_loop(candidate) for candidate in best.outcome.candidates))

    def _preference(self, attempt: _Attempt) -> tuple[bool, float]:
        candidate = attempt.outcome.candidates[0]
        text = self._search.vocabulary.decode(candidate.tokens)
        # With certainty granted, what is still doubtful is a loop.
        loops = judge(self._thresholds, text, candidate.tokens, 0.0, 0.0) is not Verdict.ACCEPTED
        return (not loops, attempt.merit)


def _for_interims(thresholds: GateThresholds) -> GateThresholds:
    return replace(thresholds, min_mean_log_prob=thresholds.min_interim_log_prob)


def _without_loop(candidate: Candidate) -> Candidate:
    kept = loop_cut(candidate.tokens)
    return Candidate(tokens=candidate.tokens[:kept], log_probs=candidate.log_probs[:kept])
