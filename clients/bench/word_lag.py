"""How late each word is shown: from the end of its audio to the first event whose text has it.

Where words lie in the audio is taken from finals with word times of the same recordings. At every event the words on
the screen (finals and the unfinished text of a channel) are aligned with the words that have begun by then; a word
counts as shown from the first event on in which the alignment has it.
"""

import string
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rapidfuzz.distance import Levenshtein

from clients.replay.pacing import MS_PER_S
from clients.replay.player import CallTrace
from clients.types import Result

_EARLY_S = 0.5
"""A word may be shown this long before its measured start: word times are right to a few 100 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedWord:
    """A word and where it is spoken, seconds of the call clock."""

    text: str = field(repr=False)
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The words of a channel that a reader sees from this moment on."""

    t_s: float
    words: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLags:
    """Lags of one or more channels."""

    lags_s: tuple[float, ...] = ()
    """One a word that was shown."""
    num_never_shown: int = 0

    def __add__(self, other: "WordLags") -> "WordLags":
        return WordLags(lags_s=self.lags_s + other.lags_s, num_never_shown=self.num_never_shown + other.num_never_shown)


def plain_words(text: str) -> tuple[str, ...]:
    """Words without case and punctuation, each still where it was spoken: no spelling of numbers is changed."""
    stripped = (word.strip(string.punctuation).casefold() for word in text.split())
    return tuple(word for word in stripped if word)


def timed_words(trace: CallTrace, channel_tag: int) -> tuple[TimedWord, ...]:
    """The words of a channel's finals, which must have been asked for with word times."""
    finals = (r for r in _results(trace, channel_tag) if r[1].is_final)
    return tuple(
        TimedWord(text=text, start_s=word.start_ms / MS_PER_S, end_s=word.end_ms / MS_PER_S)
        for _, final in finals
        for word in final.words
        for text in plain_words(word.text)
    )


def screens(trace: CallTrace, channel_tag: int) -> Iterator[Screen]:
    """What a channel shows after each of its results."""
    finals: list[str] = []
    unfinished: dict[str, tuple[str, ...]] = {}
    for t_s, result in _results(trace, channel_tag):
        if result.is_final:
            unfinished.pop(result.result_id, None)
            finals.extend(plain_words(result.transcript))
        else:
            unfinished[result.result_id] = plain_words(result.transcript)
        yield Screen(t_s=t_s, words=(*finals, *(word for words in unfinished.values() for word in words)))


def channel_lags(spoken: Sequence[TimedWord], shown: Sequence[Screen]) -> WordLags:
    """Lags of one channel of a call played in real time. `spoken` in the order of its starts."""
    first_shown_s: dict[int, float] = {}
    starts_s = [word.start_s - _EARLY_S for word in spoken]
    texts = [word.text for word in spoken]
    for screen in shown:
        num_begun = bisect_right(starts_s, screen.t_s)
        for operation in Levenshtein.opcodes(texts[:num_begun], screen.words):
            if operation.tag == "equal":
                for index in range(operation.src_start, operation.src_end):
                    first_shown_s.setdefault(index, screen.t_s)
        if len(first_shown_s) == len(spoken):
            break
    lags_s = tuple(t_s - spoken[index].end_s for index, t_s in sorted(first_shown_s.items()))
    return WordLags(lags_s=lags_s, num_never_shown=len(spoken) - len(first_shown_s))


def call_lags(trace: CallTrace, alone: CallTrace) -> WordLags:
    """Lags of all channels of a call.

    Args:
        trace: The call, played in real time.
        alone: The same recording with word times in its finals, played at any pace.
    """
    total = WordLags()
    for tag in range(1, trace.call.settings.num_channels + 1):
        total += channel_lags(timed_words(alone, tag), tuple(screens(trace, tag)))
    return total


def _results(trace: CallTrace, channel_tag: int) -> Iterator[tuple[float, Result]]:
    for timed in trace.events:
        if isinstance(timed.event, Result) and timed.event.channel_tag == channel_tag:
            yield timed.t_s, timed.event
