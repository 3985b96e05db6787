"""Makes an engine's hypotheses fit to be shown: clean text, distinct alternatives, times in the call clock."""

import re
from collections.abc import Iterable
from dataclasses import replace

from pipeline.numbers.formatting import format_numbers
from pipeline.types import Hypothesis, Word

_SOUND = re.compile(r"\[[^\]]*\]?|\([^)]*\)?|\*[^\W\d][^*\d]*\*|[♩-♯]+")
"""[MUSIC], (gentle music), *coughs* and notes describe sounds. Nobody says brackets; stars before digits are keys."""


def clean(transcript: str) -> str:
    """Takes descriptions of sounds out and collapses white space."""
    return " ".join(_SOUND.sub(" ", transcript).split())


def _said(hypothesis: Hypothesis) -> Hypothesis:
    """The hypothesis with a clean transcript and the words that are left in it."""
    transcript = clean(hypothesis.transcript)
    if transcript == " ".join(hypothesis.transcript.split()):
        return replace(hypothesis, transcript=transcript)
    return replace(hypothesis, transcript=transcript, words=tuple(_said_words(hypothesis.words)), certainties=())


def _said_words(words: Iterable[Word]) -> Iterable[Word]:
    """Words outside of descriptions; those may run over several words."""
    words = list(words)
    joined = " ".join(word.text.strip() for word in words)
    described = [match.span() for match in _SOUND.finditer(joined)]
    start = 0
    for word in words:
        end = start + len(word.text.strip())
        if not any(start < hidden_end and hidden_start < end for hidden_start, hidden_end in described):
            yield word
        start = end + 1


def to_call_clock(words: Iterable[Word], start_ms: int, end_ms: int) -> tuple[Word, ...]:
    """Moves word times by the start of their segment; they stay inside it and in order."""
    moved: list[Word] = []
    earliest_ms = start_ms
    for word in words:
        word_start_ms = min(max(word.start_ms + start_ms, earliest_ms), end_ms)
        word_end_ms = min(max(word.end_ms + start_ms, word_start_ms), end_ms)
        moved.append(replace(word, text=word.text.strip(), start_ms=word_start_ms, end_ms=word_end_ms))
        earliest_ms = word_start_ms
    return tuple(moved)


def format_all(alternatives: Iterable[Hypothesis]) -> tuple[Hypothesis, ...]:
    """Adds to each the text with its numbers in digits."""
    return tuple(replace(a, formatted_transcript=format_numbers(a.transcript, a.language_code)) for a in alternatives)


def present(alternatives: Iterable[Hypothesis], start_ms: int, end_ms: int) -> tuple[Hypothesis, ...]:
    """Cleans the alternatives of a segment; empty and repeated ones are left out."""
    shown: dict[str, Hypothesis] = {}
    for hypothesis in alternatives:
        said = _said(hypothesis)
        if said.transcript and said.transcript not in shown:
            shown[said.transcript] = replace(said, words=to_call_clock(said.words, start_ms, end_ms))
    return tuple(shown.values())
