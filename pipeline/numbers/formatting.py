"""Writes spoken English numbers in digits (inverse text normalisation).

Rules:
1. Digits said one by one, two or more in a row, become one string: "four two double one oh" is 42110. Each said digit
   is in it, leading zeros too. Groups of digits join when one at least is a single digit: "4-2-1 5, 6" is 42156.
2. Whole numbers become digits: "twenty three" is 23, "one hundred and five" is 105. Years said in two halves
   ("nineteen eighty four") are written together.
3. A single digit word stays ("one of them"), and "oh" is a zero only beside other digits.
4. What is not understood is not touched; neither is anything in another language.
"""

import re
from typing import Final

from pipeline.numbers.words import (
    AMBIGUOUS_ZEROS,
    DIGIT_WORDS,
    HUNDRED,
    LANGUAGE_CODE,
    REPEATS,
    SCALES,
    TEENS,
    TENS,
    Token,
    tokens_of,
)

_DIGITS = re.compile(r"\d+(?:-\d+)*")
_ENDS_RUN: Final = frozenset(".?!;:")
_Span = tuple[int, str]
"""How many tokens, and how they are written."""


def format_numbers(text: str, language_code: str) -> str:
    """The text with its numbers in digits."""
    if language_code != LANGUAGE_CODE:
        return text
    tokens = tokens_of(text)
    written: list[str] = []
    position = index = 0
    while index < len(tokens):
        span = _digit_string(tokens, index) or _whole_number(tokens, index)
        if span is None:
            index += 1
            continue
        count, number = span
        written += [text[position : tokens[index].start], number]
        position = tokens[index + count - 1].end
        index += count
    return "".join(written) + text[position:]


def _digit_string(tokens: list[Token], start: int) -> _Span | None:
    digits: list[str] = []
    index = start
    while index < len(tokens):
        count, said = said_digits(tokens, index)
        if not count:
            break
        digits.append(said)
        index += count
        if _ENDS_RUN & set(tokens[index - 1].tail):
            break
    if index == start or _is_plural_scale(tokens, index):
        return None
    cores = [token.core for token in tokens[start:index]]
    certain = any(core not in AMBIGUOUS_ZEROS for core in cores)
    singles = any(len(said) == 1 for said in digits)
    if not certain or (cores[0] in AMBIGUOUS_ZEROS and len(digits) == 1):
        return None
    if len(digits) == 1:
        return (index - start, digits[0]) if cores[0] in REPEATS or _is_hyphened_singles(cores[0]) else None
    if cores[0] in AMBIGUOUS_ZEROS and tokens[start].tail:
        return None  # "Oh, two of them"
    return (index - start, "".join(digits)) if singles else None


def said_digits(tokens: list[Token], index: int) -> tuple[int, str]:
    """How many tokens from here on say digits and belong together, and which digits; (0, "") if none."""
    token = tokens[index]
    if token.core in REPEATS and index + 1 < len(tokens) and not token.tail:
        following = tokens[index + 1].core
        digit = DIGIT_WORDS.get(following, following if len(following) == 1 and following.isdecimal() else "")
        return (2, digit * REPEATS[token.core]) if digit else (0, "")
    if token.core in DIGIT_WORDS:
        return 1, DIGIT_WORDS[token.core]
    if _DIGITS.fullmatch(token.core):
        return 1, token.core.replace("-", "")
    parts = token.core.split("-")
    if len(parts) > 1 and all(part in DIGIT_WORDS for part in parts):
        return 1, "".join(DIGIT_WORDS[part] for part in parts)
    return 0, ""


def _is_hyphened_singles(core: str) -> bool:
    parts = core.split("-")
    return len(parts) > 1 and all(len(part) == 1 or part in DIGIT_WORDS for part in parts)


def _is_plural_scale(tokens: list[Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].core in (HUNDRED, *SCALES)


def _whole_number(tokens: list[Token], start: int) -> _Span | None:
    """A cardinal of at least one word that is no single digit."""
    total = part = 0
    index = end = start
    while index < len(tokens):
        core = tokens[index].core
        taken = _small(tokens, index)
        if taken is not None and _fits(part, taken[1]):
            part += taken[1]
            index += taken[0]
        elif core == HUNDRED and 0 < part < 100:
            part *= 100
            index += 1
        elif core in SCALES and part and (total == 0 or total % (SCALES[core] * 1000) == 0):
            total += part * SCALES[core]
            part = 0
            index += 1
        elif _is_inner_and(tokens, start, index):
            index += 1
            continue
        else:
            break
        end = index
        if tokens[index - 1].tail:
            break
    if end == start or (end == start + 1 and tokens[start].core in DIGIT_WORDS):
        return None
    return _year(tokens, start, end, total + part) or (end - start, str(total + part))


def _is_inner_and(tokens: list[Token], start: int, index: int) -> bool:
    """The "and" of "one hundred and five"."""
    if not start < index < len(tokens) - 1 or tokens[index].core != "and":
        return False
    return tokens[index - 1].core in (HUNDRED, *SCALES) and _small(tokens, index + 1) is not None


def _small(tokens: list[Token], index: int) -> tuple[int, int] | None:
    """A number below 100 that begins here: tokens and value."""
    core = tokens[index].core
    tens, _, unit = core.partition("-")
    if tens in TENS and DIGIT_WORDS.get(unit, "0") != "0":
        return 1, TENS[tens] + int(DIGIT_WORDS[unit])
    if core in TENS or core in TEENS:
        return 1, TENS.get(core) or TEENS[core]
    if DIGIT_WORDS.get(core, "0") != "0":
        return 1, int(DIGIT_WORDS[core])
    return None


def _fits(part: int, value: int) -> bool:
    """Whether a smaller number may follow: 20 and 3, 100 and 45."""
    if part == 0:
        return True
    return (part % 100 == 0) or (part % 10 == 0 and part % 100 >= 20 and value < 10)


def _year(tokens: list[Token], start: int, end: int, value: int) -> _Span | None:
    """A century, then a number of two digits: "nineteen eighty four"."""
    if not 10 <= value < 100 or end >= len(tokens) or tokens[end - 1].tail:
        return None
    half = _whole_half(tokens, end)
    if half is None or value not in (16, 17, 18, 19, 20):
        return None
    return end - start + half[0], f"{value}{half[1]}"


def _whole_half(tokens: list[Token], start: int) -> tuple[int, int] | None:
    first = _small(tokens, start)
    if first is None or first[1] < 10:
        return None
    following = _small(tokens, start + 1) if start + 1 < len(tokens) and not tokens[start].tail else None
    if following is not None and first[1] % 10 == 0 and first[1] >= 20 and following[1] < 10:
        return 2, first[1] + following[1]
    return first
