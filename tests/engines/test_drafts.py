"""Drafts: what is proposed after a refusal, and that a search with any draft finds what it finds without."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines.whisper.drafts import Draft


class _Reader:
    """A search that knows its text beforehand and counts the steps that it needs."""

    def __init__(self, text: Sequence[int], draft: Sequence[int]) -> None:
        self._text, self._draft = text, Draft(draft)
        self.written: list[int] = []
        self.num_steps = 0

    def run(self) -> None:
        while len(self.written) < len(self._text):
            room = len(self._text) - len(self.written) - 1
            proposal = self._draft.proposal(self.written, room)
            assert len(proposal) <= room
            self.num_steps += 1
            accepted = 0
            for number in range(len(proposal) + 1):
                token = self._text[len(self.written)]
                self.written.append(token)
                if number == len(proposal) or token != proposal[number]:
                    break
                accepted += 1
            self._draft.accept(accepted)


_TEXT = list(range(100, 140))


@pytest.mark.parametrize(
    ("draft", "most_steps"),
    [
        (_TEXT, 1),
        (_TEXT[:30], 11),
        ([*_TEXT[:10], 7, *_TEXT[11:]], 5),  # another word
        ([*_TEXT[:10], *_TEXT[11:]], 6),  # a word is missing
        ([*_TEXT[:10], 7, *_TEXT[10:]], 6),  # a word too many
        ([7, 8, 9, *_TEXT[3:]], 9),
        ([7] * 40, 40),
        ([], 40),
    ],
)
def test_a_refused_word_costs_little(draft: list[int], most_steps: int) -> None:
    reader = _Reader(_TEXT, draft)
    reader.run()
    assert reader.written == _TEXT
    assert reader.num_steps <= most_steps


@given(text=st.lists(st.integers(0, 5), min_size=1, max_size=40), draft=st.lists(st.integers(0, 5), max_size=40))
def test_no_draft_can_make_it_longer_or_get_lost(text: list[int], draft: list[int]) -> None:
    reader = _Reader(text, draft)
    reader.run()
    assert reader.written == text
    assert reader.num_steps <= len(text)
