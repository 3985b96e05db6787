"""Speech contexts: where a text has something that sounds like a hint, the audio decides between the two.

Theory of operation. The search runs as if there were no hints, and the gates judge what it found; so silence, noise
and unlikely text stay without words, and a call without hints pays nothing. Then words of the accepted text that sound
like a phrase are replaced by it, and the decoder reads both texts along with the audio. The phrase is taken if the
audio makes it less likely than the words by no more than its boost (second-pass rescoring with a bonus, as in
Hall et al., "Composition-based on-the-fly rescoring for salient n-gram biasing", Interspeech 2015).

Rules.
- A phrase is only ever written in place of words, never added.
- Words of which every token is certain stay: what an interim has shown as stable, hints do not change.
- The more a phrase differs in sound from the words, the less of its boost counts.
- Each row is read alone: its outcome depends on no other row.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock

from pipeline.engines.whisper.sounds import Sounds, near_pairs, sound_of, sounds
from pipeline.types import SpeechContext

MAX_DISTANCE = 0.65
"""Of what is still compared with the audio; 0 sounds the same, 1 shares nothing."""
_FULL_DISTANCE = 0.5
"""Up to here the whole boost counts; from here on it falls to nothing at `MAX_DISTANCE`."""
_MAX_EXTRA_WORDS = 2
"""An unknown word is often heard as several known ones."""
_MAX_PROPOSALS = 6
"""Of one text; the nearest ones."""
_MIN_SOUND_LETTERS = 3
"""Shorter phrases sound like too much."""
_PARTS = re.compile(r"^(\W*)(.*?)((?:['’]s)?\W*)$", re.DOTALL)
"""Marks before, words, and marks or a genitive behind."""


class HintBook:
    """The phrases of one call, ready to be compared."""

    def __init__(self, contexts: Sequence[SpeechContext]) -> None:
        """A phrase that comes twice has its higher boost."""
        boosts: dict[str, float] = {}
        for context in contexts:
            for phrase in context.phrases:
                boosts[phrase] = max(context.boost, boosts.get(phrase, 0.0))
        known = {phrase: boost for phrase, boost in boosts.items() if len(sound_of(phrase)) >= _MIN_SOUND_LETTERS}
        self.phrases = tuple(known)
        self.boosts = tuple(known.values())
        self.max_words = max((len(phrase.split()) for phrase in known), default=0) + _MAX_EXTRA_WORDS

    @cached_property
    def sounds(self) -> Sounds:
        """Of the phrases."""
        return sounds([sound_of(phrase) for phrase in self.phrases])


class HintBooks:
    """The books of the calls that are under way, made once for each list of contexts. Safe with several threads."""

    def __init__(self, max_books: int) -> None:
        self._max_books = max_books
        self._books: OrderedDict[tuple[SpeechContext, ...], HintBook] = OrderedDict()
        self._lock = Lock()

    def of(self, contexts: tuple[SpeechContext, ...]) -> HintBook | None:
        """The book of a request's contexts; None if it has none."""
        if not contexts:
            return None
        with self._lock:
            book = self._books.pop(contexts, None) or HintBook(contexts)
            self._books[contexts] = book
            if len(self._books) > self._max_books:
                self._books.popitem(last=False)
        return book


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Words `[first, end)` of a text that may have been a phrase."""

    first: int
    end: int
    text: str = field(repr=False)
    """What would stand there, with the marks around the words."""
    bonus: float
    """How much less likely (natural logarithm) it may be than the words."""


def propose(book: HintBook, words: Sequence[str], certain: Sequence[bool]) -> list[Proposal]:
    """What to compare with the audio, nearest first.

    Args:
        book: The phrases.
        words: Of the text, in order, with their marks.
        certain: For each word, whether it is beyond doubt.
    """
    spans = [
        (first, end)
        for first in range(len(words))
        for end in range(first + 1, min(len(words), first + book.max_words) + 1)
        if not all(certain[first:end])
    ]
    if not spans or not book.phrases:
        return []
    heard = [" ".join(words[first:end]) for first, end in spans]
    found = []
    for phrase_number, span_number, distance in near_pairs(
        book.sounds, sounds([sound_of(text) for text in heard]), MAX_DISTANCE
    ):
        phrase, (first, end) = book.phrases[phrase_number], spans[span_number]
        if phrase in heard[span_number] or end - first > len(phrase.split()) + _MAX_EXTRA_WORDS:
            continue
        text = _placed(phrase, heard[span_number], begins=first == 0)
        bonus = book.boosts[phrase_number] * _share(distance)
        found.append((distance, Proposal(first=first, end=end, text=text, bonus=bonus)))
    found.sort(key=lambda pair: (pair[0], pair[1].first, pair[1].end, pair[1].text))
    return [proposal for _, proposal in found[:_MAX_PROPOSALS]]


def _share(distance: float) -> float:
    """How much of a boost counts at a distance."""
    return min(1.0, (MAX_DISTANCE - distance) / (MAX_DISTANCE - _FULL_DISTANCE))


def _placed(phrase: str, heard: str, *, begins: bool) -> str:
    match = _PARTS.match(heard)
    before, behind = (match.group(1), match.group(3)) if match else ("", "")
    if begins and heard[len(before) : len(before) + 1].isupper():
        phrase = phrase[:1].upper() + phrase[1:]
    return f"{before}{phrase}{behind}"
