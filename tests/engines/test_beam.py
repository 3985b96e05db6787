"""Beam search: one beam is greedy, more beams find likelier sequences."""

import pytest
import torch

from pipeline.engines.whisper.beam import beam_search
from pipeline.engines.whisper.cache import CrossStates
from pipeline.engines.whisper.features import LogMel, window
from pipeline.engines.whisper.model import WhisperModel, build_model
from pipeline.engines.whisper.rules import TokenRules
from pipeline.engines.whisper.search import Candidate, RowPlan, Search, token_budget
from pipeline.engines.whisper.sources import LoadedModel
from tests.engines.support import clip

_CPU = torch.device("cpu")
_NAMES = ("order", "number")
_SHORT_FRAMES = 600
"""Enough for the scores of searches to be compared, if not for their text."""


@pytest.fixture(scope="module")
def model(loaded_tiny: LoadedModel) -> WhisperModel:
    return build_model(loaded_tiny, _CPU, "float32")


@pytest.fixture(scope="module")
def search(model: WhisperModel) -> Search:
    return Search(model.decoder, model.vocabulary, TokenRules(model.spec, model.vocabulary, False, _CPU))


@pytest.fixture(scope="module")
def cross(model: WhisperModel) -> CrossStates:
    log_mel = LogMel(80, _CPU)
    mel = torch.stack([window(log_mel.frames(torch.from_numpy(clip(name))), _SHORT_FRAMES) for name in _NAMES])
    with torch.inference_mode():
        return model.decoder.cross_states(model.encoder(mel))


def _plans(model: WhisperModel, max_new_tokens: int) -> list[RowPlan]:
    prompt = (model.vocabulary.start, model.vocabulary.no_timestamps)
    return [RowPlan(prompt=prompt, max_new_tokens=max_new_tokens, seed=n) for n in range(len(_NAMES))]


def _total(candidate: Candidate) -> float:
    return sum(candidate.log_probs)


def _forced(search: Search, cross: CrossStates, plan: RowPlan, tokens: tuple[int, ...]) -> list[float]:
    """Log probabilities of given tokens, in one pass."""
    cache = search.decoder.new_cache(cross, len(plan.prompt) + len(tokens))
    logits = search.prefill(cache, [plan.prompt], [tokens])[0][0]
    scores = search.rules.apply(logits, [tokens[:n] for n in range(len(tokens) + 1)]).log_softmax(-1)
    return [scores[n, token].item() for n, token in enumerate(tokens)]


@torch.inference_mode()
def test_one_beam_is_greedy(search: Search, model: WhisperModel, cross: CrossStates) -> None:
    plans = _plans(model, 24)
    greedy = [outcome.candidates[0] for outcome in search.decode(cross, plans)]
    single = [outcome.candidates[0] for outcome in beam_search(search, cross, plans, 1)]
    assert [c.tokens for c in single] == [c.tokens for c in greedy]
    assert [_total(c) for c in single] == pytest.approx([_total(c) for c in greedy], abs=1e-3)


@torch.inference_mode()
def test_more_beams_find_a_likelier_start(search: Search, model: WhisperModel, cross: CrossStates) -> None:
    plans = _plans(model, 6)  # the budget ends the search before the text ends: sums of equal length
    greedy = [outcome.candidates[0] for outcome in search.decode(cross, plans)]
    beams = [outcome.candidates for outcome in beam_search(search, cross, plans, 5)]
    for one, several in zip(greedy, beams, strict=True):
        assert len({c.tokens for c in several}) == len(several) == 5
        assert all(len(c.tokens) == 6 for c in several)
        assert _total(several[0]) >= _total(one) - 1e-4


@torch.inference_mode()
def test_scores_are_those_of_the_tokens(search: Search, model: WhisperModel, cross: CrossStates) -> None:
    plans = _plans(model, 12)
    for row, outcome in enumerate(beam_search(search, cross, plans, 3)):
        for candidate in outcome.candidates:
            assert _forced(search, cross.select([row]), plans[row], candidate.tokens) == pytest.approx(
                candidate.log_probs[: len(candidate.tokens)], abs=1e-3
            )


@torch.inference_mode()
def test_sampling_repeats_itself_and_ignores_the_batch(search: Search, model: WhisperModel, cross: CrossStates) -> None:
    plans = _plans(model, 12)
    first, again = search.decode(cross, plans, 1.0), search.decode(cross, plans, 1.0)
    assert first == again
    alone = search.decode(cross.select([1]), plans[1:], 1.0)
    assert alone[0].candidates[0].tokens == first[1].candidates[0].tokens
    assert first[0].candidates[0].tokens != search.decode(cross, plans, 0.8)[0].candidates[0].tokens


@torch.inference_mode()
def test_no_row_outruns_its_budget(search: Search, model: WhisperModel, cross: CrossStates) -> None:
    for budget in (1, 2, 9):
        for outcome in search.decode(cross, _plans(model, budget)):
            assert len(outcome.candidates[0].tokens) <= budget


def test_the_budget_grows_with_the_audio_and_never_outgrows_the_decoder() -> None:
    budgets = [token_budget(seconds, 2, 448, 12.0) for seconds in (0.0, 1.0, 5.0, 30.0)]
    assert budgets == [16, 28, 76, 376]
    assert token_budget(30.0, 4, 448, 30.0) == 444


def test_rules_forbid_what_is_not_text(model: WhisperModel) -> None:
    vocabulary = model.vocabulary
    rules = TokenRules(model.spec, vocabulary, False, _CPU)
    first, later = rules.apply(torch.zeros(2, model.spec.vocabulary_size), [(), (314,)])
    assert torch.isinf(first[vocabulary.end_of_text])
    assert later[vocabulary.end_of_text] == 0
    assert torch.isinf(later[vocabulary.end_of_text + 1 :]).all()
    assert torch.isinf(later[list(set(model.spec.suppressed_ids))]).all()


@pytest.mark.parametrize(
    ("written", "allowed", "forbidden"),
    [
        ((), (0, 50), ("text", "end", 51)),
        ((5,), ("text",), (0, 5, 6)),
        ((5, "text"), ("text", "end", 6), (0, 5)),
        ((5, "text", 40), ("end", 40, 41), ("text", 39)),
        ((5, "text", 40, 40), ("text",), (40, 41)),
    ],
)
def test_timestamps_come_in_pairs_and_never_go_back(
    model: WhisperModel,
    written: tuple[int | str, ...],
    allowed: tuple[int | str, ...],
    forbidden: tuple[int | str, ...],
) -> None:
    vocabulary = model.vocabulary
    names: dict[int | str, int] = {"text": 314, "end": vocabulary.end_of_text}
    names |= {step: vocabulary.first_timestamp + step for step in range(100)}
    logits = torch.zeros(1, model.spec.vocabulary_size)
    logits[0, vocabulary.first_timestamp :] = -10.0  # together less likely than one text token
    TokenRules(model.spec, vocabulary, True, _CPU).apply(logits, [[names[w] for w in written]])
    assert all(torch.isfinite(logits[0, names[name]]) for name in allowed)
    assert all(torch.isinf(logits[0, names[name]]) for name in forbidden)
