"""What to verify next of a draft that was partly refused.

Interims of one utterance differ in a word here and there; what follows such a word is mostly right. So a refused draft
is not thrown away: the search proposes what comes behind the refused token, and when that fails too it waits until its
own text meets the draft again. Costs change, never the outcome: every token is still the search's own choice
(speculative decoding, Leviathan et al. 2023, arXiv:2211.17192, with the last hypothesis for a draft model).
"""

from collections.abc import Sequence

_MEETING_TOKENS = 6
"""How far behind a refused token the text may meet the draft again."""
_GUESSED_TOKENS = 8
"""Proposed at once while it is unsure whether text and draft have met."""


class Draft:
    """The draft of one row and how far it is used up."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tokens
        self._refused = 0
        """The first token not accepted."""
        self._start = 0
        """The first token of the newest proposal."""
        self._has_guessed = False
        """Whether the text may have lost the draft for good: replacing one token was no explanation."""

    def proposal(self, written: Sequence[int], room: int) -> Sequence[int]:
        """The tokens that may follow what is written, at most `room`."""
        if not written:
            return self._tokens[:room]
        near = self._tokens[self._refused : self._refused + _MEETING_TOKENS]
        if written[-1] in near:
            self._start = self._refused + list(near).index(written[-1]) + 1
        elif not self._has_guessed:
            self._start = self._refused + 1
        else:
            self._start = len(self._tokens)
        # New words stand before the full stop that the last text ended with: it is what is most often right.
        self._start = min(self._start, max(0, len(self._tokens) - 1))
        return self._tokens[self._start : self._start + min(room, _GUESSED_TOKENS)]

    def accept(self, num_tokens: int) -> None:
        """The search chose the first tokens of the newest proposal itself, and then another."""
        self._has_guessed = num_tokens == 0
        if num_tokens:
            self._refused = self._start + num_tokens
