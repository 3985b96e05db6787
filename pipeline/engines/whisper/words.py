"""Groups text tokens into words: by spaces, or by characters in scripts written without them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.engines.whisper.vocabulary import Vocabulary

_UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "my", "yue"})
_JOINS_NEXT = "\"'“¿([{-"
_JOINS_PREVIOUS = "\"'.。,，!！?？:：”)]}、"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSpan:
    """A word and the text tokens `[first, end)` that spell it."""

    text: str = field(repr=False)
    first: int
    end: int


def split_words(vocabulary: Vocabulary, tokens: Sequence[int], language_code: str) -> list[WordSpan]:
    """Splits text tokens into words, punctuation joined to the word it belongs to.

    Texts are without surrounding space; the spans cover all tokens in order.
    """
    units = _split_characters(vocabulary, tokens)
    if language_code not in _UNSPACED_LANGUAGES:
        units = _join_spaced(units)
    units = _join_punctuation(units)
    spans, first = [], 0
    for text, count in units:
        spans.append(WordSpan(text=text.strip(), first=first, end=first + count))
        first += count
    return [span for span in spans if span.text]


_Unit = tuple[str, int]
"""Text and number of tokens."""


def _split_characters(vocabulary: Vocabulary, tokens: Sequence[int]) -> list[_Unit]:
    """The shortest runs of tokens that are whole UTF-8 characters."""
    units: list[_Unit] = []
    pending = b""
    count = 0
    for token in tokens:
        pending += vocabulary.decode_bytes([token])
        count += 1
        try:
            text = pending.decode("utf-8")
        except UnicodeDecodeError:
            continue
        units.append((text, count))
        pending, count = b"", 0
    if count:
        units.append((pending.decode("utf-8", errors="replace").rstrip("\ufffd"), count))
    return units


def _join_spaced(units: Sequence[_Unit]) -> list[_Unit]:
    words: list[_Unit] = []
    for text, count in units:
        begins_word = text.startswith(" ") or not text.strip()
        if begins_word or not words:
            words.append((text, count))
        else:
            words[-1] = (words[-1][0] + text, words[-1][1] + count)
    return words


def _join_punctuation(units: Sequence[_Unit]) -> list[_Unit]:
    joined: list[_Unit] = []
    for text, count in units:
        mark = text.strip()
        belongs_to_previous = mark == "" or all(c in _JOINS_PREVIOUS for c in mark)
        previous_waits = bool(joined) and _waits_for_next(joined[-1][0])
        if joined and (belongs_to_previous or previous_waits):
            joined[-1] = (joined[-1][0] + text, joined[-1][1] + count)
        else:
            joined.append((text, count))
    return joined


def _waits_for_next(text: str) -> bool:
    mark = text.strip()
    return text.startswith(" ") and mark != "" and all(c in _JOINS_NEXT for c in mark)
