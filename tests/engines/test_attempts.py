"""Fallback on constructed outcomes: only failing finals are decoded again, and the best attempt is kept."""

from collections.abc import Sequence

import pytest
import torch

from pipeline.engines.whisper.attempts import Attempts, Found
from pipeline.engines.whisper.cache import CrossStates, RowStates
from pipeline.engines.whisper.gates import FALLBACK_TEMPERATURES, GateThresholds
from pipeline.engines.whisper.search import Candidate, RowOutcome, RowPlan
from pipeline.engines.whisper.sources import LoadedModel
from pipeline.engines.whisper.vocabulary import Vocabulary

_GOOD, _OTHER, _LOOP = (314, 561, 588), (1105, 11376, 3530), (8505, 284) * 30


def _outcome(tokens: tuple[int, ...], mean: float = -0.2, no_speech: float = 0.0) -> RowOutcome:
    candidate = Candidate(tokens=tokens, log_probs=(mean,) * (len(tokens) + 1))
    return RowOutcome(candidates=(candidate,), no_speech_prob=no_speech)


class _ScriptedSearch:
    """Answers by temperature and row; a row is known by its seed."""

    def __init__(self, vocabulary: Vocabulary, script: dict[int, dict[float, RowOutcome]]) -> None:
        self.vocabulary = vocabulary
        self.calls: list[tuple[float, list[int]]] = []
        self._script = script

    def decode(self, cross: CrossStates, plans: Sequence[RowPlan], temperature: float = 0.0) -> list[RowOutcome]:
        assert cross.num_rows == len(plans)
        self.calls.append((temperature, [plan.seed for plan in plans]))
        return [self._script[plan.seed].get(temperature, self._script[plan.seed][0.0]) for plan in plans]


def _run(
    loaded: LoadedModel, *script: dict[float, RowOutcome], is_final: bool = True
) -> tuple[list[tuple[int, ...] | None], list[tuple[float, list[int]]]]:
    search = _ScriptedSearch(loaded.vocabulary, dict(enumerate(script)))
    attempts = Attempts(search, GateThresholds())  # type: ignore[arg-type]
    states = torch.zeros(1, 1, 1)
    cross = CrossStates([RowStates(keys=[states], values=[states])] * len(script))
    plans = [RowPlan(prompt=(1,), max_new_tokens=9, seed=n) for n in range(len(script))]
    found = attempts.finals(cross, plans, 1) if is_final else attempts.interims(cross, plans)
    rows = [row.candidates if isinstance(row, Found) else row for row in found]
    return [candidates[0].tokens if candidates else None for candidates in rows], search.calls


def test_only_failing_rows_are_decoded_again(loaded_tiny: LoadedModel) -> None:
    late = {0.0: _outcome(_LOOP), 0.4: _outcome(_OTHER)}
    tokens, calls = _run(loaded_tiny, {0.0: _outcome(_GOOD)}, late, {0.0: _outcome(_GOOD)})
    assert tokens == [_GOOD, _OTHER, _GOOD]
    assert calls == [(0.0, [0, 1, 2]), (0.2, [1]), (0.4, [1])]


def test_a_failing_interim_has_no_words_and_no_second_try(loaded_tiny: LoadedModel) -> None:
    tokens, calls = _run(
        loaded_tiny, {0.0: _outcome(_LOOP)}, {0.0: _outcome(_GOOD)}, {0.0: _outcome(_GOOD, -1.6)}, is_final=False
    )
    assert tokens == [None, _GOOD, None]
    assert calls == [(0.0, [0, 1, 2])]


def test_a_final_that_never_passes_keeps_its_best_attempt(loaded_tiny: LoadedModel) -> None:
    unlikely = {0.0: _outcome(_LOOP, -0.1), 0.2: _outcome(_GOOD, -1.6), 0.6: _outcome(_OTHER, -1.2)}
    tokens, calls = _run(loaded_tiny, unlikely)
    assert tokens == [_OTHER]
    assert [temperature for temperature, _ in calls] == [0.0, *FALLBACK_TEMPERATURES]


def test_a_loop_that_never_ends_is_said_once(loaded_tiny: LoadedModel) -> None:
    tokens, _ = _run(loaded_tiny, {0.0: _outcome((*_GOOD, *_LOOP))})
    assert tokens == [(*_GOOD, *_LOOP[:2])]


@pytest.mark.parametrize(
    "outcome",
    [_outcome(_GOOD, -0.6, no_speech=0.9), _outcome(_GOOD, -1.4, no_speech=0.4)],
    ids=["nobody speaks", "doubtful to the end"],
)
def test_text_without_evidence_of_speech_is_dropped(loaded_tiny: LoadedModel, outcome: RowOutcome) -> None:
    assert _run(loaded_tiny, {0.0: outcome})[0] == [None]
