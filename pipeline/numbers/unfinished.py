"""Whether a text stops in the middle of a number, and how its parts are written together.

A card or telephone number is said in groups with a breath between them. What ends with digits said one by one, or with
a group of at least three, may go on: up to sixteen digits, a payment card's (ISO/IEC 7812 allows 19, which is rare).
"""

import re
from itertools import takewhile
from typing import Final

from pipeline.numbers.formatting import format_numbers, said_digits
from pipeline.numbers.words import LANGUAGE_CODE, Token, tokens_of

_COMPLETE_DIGITS: Final = 16
_TELLING_DIGITS: Final = 3
"""Two digits in one group are an age, an hour or a quantity."""
_WITH_LETTERS: Final = re.compile(r"(?:[a-z]-?)?\d+(?:-?[a-z]?-?\d+)*")
"""Part of an order number or a postcode; often what a model makes of "eight". Not 4th, 5pm and 20s."""
_MISHEARD: Final = re.compile(r"[a-z](?:-\w)*|\d+th")
"""What a model also makes of digits behind others."""
_NO_DIGIT: Final = re.compile(r"\D")
_STOPS: Final = " .,;:!?\u2026\u2013\u2014-"


def ends_in_unfinished_number(text: str, language_code: str) -> bool:
    """Whether more digits are likely to follow; always False in languages whose numbers are not known."""
    if language_code != LANGUAGE_CODE:
        return False
    groups = _trailing_groups(text)
    num_digits = sum(len(_NO_DIGIT.sub("", group)) for group in groups)
    is_told = num_digits >= _TELLING_DIGITS or len(groups) > 1 or any("-" in group for group in groups)
    return num_digits < _COMPLETE_DIGITS and num_digits > 1 and is_told


def format_joined(first_formatted: str, then: str, language_code: str) -> str:
    """The joined text with its numbers in digits, the one that was cut written as one."""
    head = first_formatted.rstrip(_STOPS)
    tokens = tokens_of(head)
    groups = _trailing_digits(tokens)
    if not groups:
        return format_numbers(f"{head} {then}", language_code)
    spaced = " ".join("".join(groups))
    start = tokens[-len(groups)].start
    return format_numbers(f"{head[:start]}{spaced} {then}", language_code)


def _trailing_groups(text: str) -> list[str]:
    """The groups at the end of the text: digits spelled out or not, letters among them, as in A5 and 4-2."""
    tokens = tokens_of(text)
    groups: list[str] = []
    passed: list[str] = []
    for index in reversed(range(len(tokens))):
        core = tokens[index].core
        _, digits = said_digits(tokens, index)
        if digits or _WITH_LETTERS.fullmatch(core):
            groups = [core if not digits or "-" in core else digits, *passed, *groups]
            passed = []
        elif _MISHEARD.fullmatch(core):
            passed.insert(0, core)
        else:
            break
    return groups


def _trailing_digits(tokens: list[Token]) -> list[str]:
    """The digits of each group at the end that has no letters."""
    said = (said_digits(tokens, index)[1] for index in reversed(range(len(tokens))))
    return list(takewhile(bool, said))[::-1]
