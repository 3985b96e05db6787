"""Word error rate against exact references, both sides normalised the same way."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, cast

import jiwer
from whisper_normalizer.basic import BasicTextNormalizer
from whisper_normalizer.english import EnglishTextNormalizer

from clients.replay.player import CallTrace
from clients.types import Result

SPOKEN_KEYS = {"#": " pound ", "*": " star "}
"""How telephone keys are read out."""
UNSPACED_LANGUAGES = ("zh", "ja", "th", "lo", "my")
"""Scored by character: they write no spaces between words."""
EditKind = Literal["equal", "substitute", "delete", "insert"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A run of words that is equal, or differs, between reference and hypothesis."""

    kind: EditKind
    reference: str = field(repr=False)
    hypothesis: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One channel of one call against its reference."""

    call_index: int
    name: str
    channel_tag: int
    num_words: int
    """Of the reference."""
    num_errors: int
    edits: tuple[Edit, ...] = field(repr=False)

    @property
    def wer(self) -> float:
        """Errors per reference word; an empty reference counts as one word, so that invented words show."""
        return self.num_errors / max(1, self.num_words)


@cache
def _english() -> EnglishTextNormalizer:
    return EnglishTextNormalizer()


@cache
def _basic(split_letters: bool) -> BasicTextNormalizer:
    return BasicTextNormalizer(remove_diacritics=True, split_letters=split_letters)


def normalize(text: str, language_code: str) -> str:
    """Words as they are compared: case, punctuation, spelling of numbers and telephone keys do not count.

    No language at all is taken for English.
    """
    for key, spoken in SPOKEN_KEYS.items():
        text = text.replace(key, spoken)
    language = language_code.lower().partition("-")[0]
    if language in ("", "en", "auto"):
        return str(_english()(text)).strip()
    return str(_basic(language in UNSPACED_LANGUAGES)(text)).strip()


def transcript_of(trace: CallTrace, channel_tag: int) -> str:
    """The finals of a channel, in the order they came."""
    results = (timed.event for timed in trace.events if isinstance(timed.event, Result))
    finals = (r.transcript.strip() for r in results if r.is_final and r.channel_tag == channel_tag)
    return " ".join(text for text in finals if text)


def score_call(trace: CallTrace) -> list[Score]:
    """One score for each channel that has a reference."""
    reference = trace.call.reference
    if reference is None:
        return []
    language = trace.call.settings.language_code or reference.language_code
    return [
        _score(trace, channel_tag, normalize(text, language), language)
        for channel_tag, text in sorted(reference.texts.items())
    ]


def _score(trace: CallTrace, channel_tag: int, reference: str, language: str) -> Score:
    hypothesis = normalize(transcript_of(trace, channel_tag), language)
    edits = compare(reference, hypothesis)
    num_errors = sum(max(len(e.reference.split()), len(e.hypothesis.split())) for e in edits if e.kind != "equal")
    return Score(
        call_index=trace.call.index,
        name=trace.call.name,
        channel_tag=channel_tag,
        num_words=len(reference.split()),
        num_errors=num_errors,
        edits=edits,
    )


def compare(reference: str, hypothesis: str) -> tuple[Edit, ...]:
    """The least edits, word by word, that turn one normalised text into the other."""
    if not reference or not hypothesis:
        kind: EditKind = "insert" if hypothesis else "delete"
        return (Edit(kind=kind, reference=reference, hypothesis=hypothesis),) if reference or hypothesis else ()
    output = jiwer.process_words(reference, hypothesis)
    said, heard = output.references[0], output.hypotheses[0]
    return tuple(
        Edit(
            kind=cast(EditKind, chunk.type),
            reference=" ".join(said[chunk.ref_start_idx : chunk.ref_end_idx]),
            hypothesis=" ".join(heard[chunk.hyp_start_idx : chunk.hyp_end_idx]),
        )
        for chunk in output.alignments[0]
    )


def pooled_wer(scores: Iterable[Score]) -> float | None:
    """All errors per all reference words; None without references."""
    scores = list(scores)
    if not scores:
        return None
    return sum(score.num_errors for score in scores) / max(1, sum(score.num_words for score in scores))
