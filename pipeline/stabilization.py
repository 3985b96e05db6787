"""How much of an interim will stay: words on which all hypotheses of a segment have agreed for long enough.

After local agreement (Liu et al. 2020, arXiv:2005.11185; Macháček et al. 2023, arXiv:2307.14743). A word counts as
agreed from the first hypothesis that had it, in this place, with the same words before it. Since that hypothesis
had heard no more than the audio of its time, the age of an agreement bounds the distance to the end of the audio.
"""

from dataclasses import dataclass, field

_MIN_AGREEING_HYPOTHESES = 3
_MAX_STABILITY = 0.95


@dataclass(slots=True)
class _AgreedWord:
    text: str
    since_ms: int
    """How much audio the first hypothesis with this word had heard."""
    num_hypotheses: int = 1


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
        self._stable_text = ""

    @property
    def stable_text(self) -> str:
        """What is settled so far."""
        return self._stable_text

    def update(self, transcript: str, heard_ms: int) -> StabilizedText | None:
        """Takes the next hypothesis, which has heard `heard_ms` of the segment.

        Returns:
            What to show, or None when the hypothesis contradicts what is already settled.
        """
        words = _split(transcript)
        agreed = self._count_agreed(words)
        if len("".join(words[:agreed])) < len(self._stable_text):
            return None
        for word in self._words[:agreed]:
            word.num_hypotheses += 1
        self._words[agreed:] = [_AgreedWord(text, heard_ms) for text in words[agreed:]]
        self._settle(heard_ms)
        agreed_length = len("".join(words[:agreed]))
        return StabilizedText(
            transcript=transcript,
            stable_length=len(self._stable_text),
            stability=round(_MAX_STABILITY * agreed_length / max(1, len(transcript)), 2),
        )

    def _count_agreed(self, words: list[str]) -> int:
        agreed = 0
        for known, text in zip(self._words, words, strict=False):
            if known.text != text:
                break
            agreed += 1
        return agreed

    def _settle(self, heard_ms: int) -> None:
        settled = ""
        for word in self._words:
            old = heard_ms - word.since_ms >= self._stable_after_ms
            if not old or word.num_hypotheses < _MIN_AGREEING_HYPOTHESES:
                break
            settled += word.text
        if len(settled) > len(self._stable_text):
            self._stable_text = settled


def _split(transcript: str) -> list[str]:
    """Splits before each space, so that the parts add up to the text. Text without spaces is split by character."""
    if " " not in transcript and not transcript.isascii():
        return list(transcript)
    words: list[str] = []
    for index, word in enumerate(transcript.split(" ")):
        words.append(word if index == 0 else f" {word}")
    return words
