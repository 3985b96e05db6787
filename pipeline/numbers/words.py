"""The number words of English, and how a text falls apart into tokens."""

import re
from dataclasses import dataclass
from typing import Final

LANGUAGE_CODE: Final = "en"
DIGIT_WORDS: Final = {
    "zero": "0",
    "oh": "0",
    "o": "0",
    "nought": "0",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
}
"""Said one by one; "oh" is a zero only between digits."""
AMBIGUOUS_ZEROS: Final = frozenset({"oh", "o"})
TEENS: Final = {
    word: 10 + index
    for index, word in enumerate(
        ["ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
    )
}
TENS: Final = {
    word: 10 * index
    for index, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], start=2
    )
}
HUNDRED: Final = "hundred"
SCALES: Final = {"thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
REPEATS: Final = {"double": 2, "triple": 3}
"""Said before a digit: "double four" is 44."""

_TOKEN = re.compile(r"\S+")
_TRAILING = ".,;:!?\"')]\u2026\u2013\u2014-"
_LEADING = "\"'([\u2026\u2013\u2014-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A stretch without spaces: its core between punctuation marks, and where the core lies in the text."""

    core: str
    """Lower case."""
    start: int
    end: int
    tail: str
    """Punctuation behind the core."""


def tokens_of(text: str) -> list[Token]:
    """Splits at white space; punctuation around a word is kept apart from it."""
    return [token for match in _TOKEN.finditer(text) if (token := _token(match)) is not None]


def _token(match: re.Match[str]) -> Token | None:
    whole = match.group()
    core = whole.rstrip(_TRAILING)
    start = match.start() + len(core) - len(core.lstrip(_LEADING))
    end = match.start() + len(core)
    if start >= end:
        return None
    return Token(core=whole[start - match.start() : len(core)].lower(), start=start, end=end, tail=whole[len(core) :])
