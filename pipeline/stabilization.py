"""How much of an interim will stay: words on which all hypotheses of a segment have agreed for long enough.

After local agreement (Liu et al. 2020, arXiv:2005.11185; Macháček et al. 2023, arXiv:2307.14743). A word counts as
agreed from the first hypothesis that had it, in this place, with the same words before it. Since that hypothesis
had heard no more than the audio of its time, the age of an agreement bounds the distance to the end of the audio.

Agreement alone is not enough: with more audio to come, Whisper changes its mind about words and spellings that it
was never sure of ("one" or "1", "You're" or "You are"). So a word settles only if each hypothesis was certain of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

_MIN_AGREEING_HYPOTHESES = 3
_MIN_CERTAINTY = 0.75
"""Of the least likely token of a word."""
_MAX_STABILITY = 0.95


@dataclass(slots=True)
class _AgreedWord:
    text: str
    since_ms: int
    """How much audio the first hypothesis with this word, certain of it, had heard."""
    num_hypotheses: int = 0

    def confirm(self, heard_ms: int, *, is_certain: bool) -> None:
        if is_certain:
            self.num_hypotheses += 1
        else:
            self.since_ms, self.num_hypotheses = heard_ms, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilizedText:
    """An interim's text and how much of it is settled."""

    transcript: str = field(repr=False)
    stable_length: int
    """Leading characters that will not change."""
    stability: float
    """Share of the text that the hypothesis before had too."""


class Stabilizer:
    """Follows the hypotheses of one segment."""

    def __init__(self, stable_after_ms: int) -> None:
        self._stable_after_ms = stable_after_ms
        self._words: list[_AgreedWord] = []
        self._num_settled = 0
        self._stable_text = ""

    def update(self, transcript: str, heard_ms: int, certainties: Sequence[float] = ()) -> StabilizedText:
        """Takes the next hypothesis, which has heard `heard_ms` of the segment; returns what to show.

        `certainties` has one number a word; without them nothing settles. A hypothesis that contradicts what is
        settled is shown from there on.
        """
        words = _split(transcript)
        certain = [c >= _MIN_CERTAINTY for c in certainties] if len(certainties) == len(words) else [False] * len(words)
        if not transcript.startswith(self._stable_text):
            settled = self._words[: self._num_settled]
            behind = _position_behind([word.text for word in settled], words)
            words = [word.text for word in settled] + words[behind:]
            certain = [True] * len(settled) + certain[behind:]
        agreed = self._count_agreed(words)
        self._words[agreed:] = [_AgreedWord(text, heard_ms) for text in words[agreed:]]
        for word, is_certain in zip(self._words, certain, strict=True):
            word.confirm(heard_ms, is_certain=is_certain)
        self._settle(heard_ms)
        shown = "".join(words)
        return StabilizedText(
            transcript=shown,
            stable_length=len(self._stable_text),
            stability=round(_MAX_STABILITY * len("".join(words[:agreed])) / max(1, len(shown)), 2),
        )

    def _count_agreed(self, words: list[str]) -> int:
        agreed = 0
        for known, text in zip(self._words, words, strict=False):
            if known.text != text:
                break
            agreed += 1
        return agreed

    def _settle(self, heard_ms: int) -> None:
        for word in self._words[self._num_settled :]:
            is_old = heard_ms - word.since_ms >= self._stable_after_ms
            if not is_old or word.num_hypotheses < _MIN_AGREEING_HYPOTHESES:
                break
            self._num_settled += 1
            self._stable_text += word.text


def _split(transcript: str) -> list[str]:
    """Splits before each space, so that the parts add up to the text."""
    first, *others = transcript.split(" ")
    return [first, *(f" {word}" for word in others)]


def _position_behind(settled: Sequence[str], words: Sequence[str]) -> int:
    """Where in `words` that goes on which `settled` says in other words or spelling."""
    matcher = SequenceMatcher(None, [_key(w) for w in settled], [_key(w) for w in words], autojunk=False)
    last = max(matcher.get_matching_blocks(), key=lambda block: block.a + block.size if block.size else 0)
    if not last.size:
        return len(settled)
    return last.b + last.size + len(settled) - (last.a + last.size)


def _key(word: str) -> str:
    return "".join(c for c in word.lower() if c.isalnum())
