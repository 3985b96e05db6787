"""Makes an engine's hypotheses fit to be shown: clean text, distinct alternatives, times in the call clock."""

from collections.abc import Iterable
from dataclasses import replace

from pipeline.types import Hypothesis, Word


def clean(transcript: str) -> str:
    """Collapses white space."""
    return " ".join(transcript.split())


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


def present(alternatives: Iterable[Hypothesis], start_ms: int, end_ms: int) -> tuple[Hypothesis, ...]:
    """Cleans the alternatives of a segment; empty and repeated ones are left out."""
    shown: dict[str, Hypothesis] = {}
    for hypothesis in alternatives:
        transcript = clean(hypothesis.transcript)
        if transcript and transcript not in shown:
            words = to_call_clock(hypothesis.words, start_ms, end_ms)
            shown[transcript] = replace(hypothesis, transcript=transcript, words=words)
    return tuple(shown.values())
