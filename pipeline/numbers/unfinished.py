"""Whether a text stops in the middle of a number, and how its parts are written together.

A card or telephone number is said in groups with a breath between them. What ends with digits said one by one, or with
a group of at least three, may go on: up to sixteen digits, a payment card's (ISO/IEC 7812 allows 19, which is rare).
"""

from typing import Final

from pipeline.numbers.formatting import format_numbers, said_digits
from pipeline.numbers.words import tokens_of

COMPLETE_DIGITS: Final = 16
_TELLING_DIGITS: Final = 3
"""Two digits in one group are an age, an hour or a quantity."""
_LANGUAGE: Final = "en"
_STOPS: Final = " .,;:!?\u2026\u2013\u2014-"


def ends_in_unfinished_number(text: str, language_code: str) -> bool:
    """Whether more digits are likely to follow; always False in languages whose numbers are not known."""
    if language_code != _LANGUAGE:
        return False
    groups = _trailing_digits(text)
    num_digits = sum(len(group) for group in groups)
    return num_digits < COMPLETE_DIGITS and (num_digits >= _TELLING_DIGITS or len(groups) > 1)


def format_joined(first_formatted: str, then: str, language_code: str) -> str:
    """The joined text with its numbers in digits, the one that was cut written as one."""
    head = first_formatted.rstrip(_STOPS)
    groups = _trailing_digits(head)
    if not groups:
        return format_numbers(f"{first_formatted} {then}", language_code)
    spaced = " ".join("".join(groups))
    start = tokens_of(head)[-len(groups)].start
    return format_numbers(f"{head[:start]}{spaced} {then}", language_code)


def _trailing_digits(text: str) -> list[str]:
    """The digits of each group at the end of the text, spelled out or not."""
    tokens = tokens_of(text)
    groups: list[str] = []
    index = len(tokens)
    while index > 0:
        count, digits = said_digits(tokens, index - 1)
        if not count:
            break
        groups.insert(0, digits)
        index -= 1
    return groups
