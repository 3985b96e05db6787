"""Which language a party speaks: decided from what its finals sounded like, then kept.

Theory of operation. With language "auto" the engine tells how likely each language is for the audio of each final.
A few short words tell little, and a text in the wrong language is worthless, so that the decision is the call's, not
the segment's: the probabilities of all finals so far, weighted by how long was spoken, until there is enough of them.

Rules:
1. Before the lock a final is in the likeliest language of all that was heard up to its own end.
2. The lock falls with 3 s of speech and a clear winner, with 12 s in any case.
3. Behind it every final is in the language locked, except when another one is heard clearly in a long final, or in
   two finals in a row: then the lock goes over to that one.
4. All this depends on the finals in their order alone, never on when an answer came: an answer in another language
   than the finals before it allow is asked for again in the right one.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.types import AUTO_LANGUAGE, DecodeHints, LanguageProbability

_ENOUGH_SPEECH_S = 3.0
_CLEAR_SHARE = 0.6
_AMPLE_SPEECH_S = 12.0
_SURE_PROBABILITY = 0.8
"""Of another language than the one locked, before it counts as a contradiction."""
_LONG_S = 6.0
"""A contradiction this long is believed at once."""
_TELLING_S = 1.5
"""A shorter final neither contradicts nor confirms the lock."""
_FULL_WEIGHT_S = 1.0
"""A shorter final counts for less than its length: detection needs about a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageVerdict:
    """In which language a final belongs."""

    language_code: str
    """Empty: as it was decoded."""
    newly_locked: float | None = None
    """The probability, when with this final the language of the party is settled, or settled anew."""


class LanguageLock:
    """One party's language."""

    def __init__(self) -> None:
        self._locked = ""
        self._speech_s = 0.0
        self._heard_s: dict[str, float] = defaultdict(float)
        """Speech by language: seconds times probability."""
        self._doubt = ""
        """The language of the last final, where it contradicts the lock."""

    @property
    def guess(self) -> str:
        """The language locked, else the likeliest so far; empty when nothing was heard."""
        return self._locked or self._likeliest()

    def hear(self, probabilities: Sequence[LanguageProbability], speech_s: float) -> LanguageVerdict:
        """Takes the next final with words in it; finals come in their order, each once.

        Args:
            probabilities: of the languages that are likely for its audio; empty where the engine cannot tell.
            speech_s: how long was spoken in it.
        """
        if not probabilities:
            return LanguageVerdict(language_code=self._locked)
        if self._locked:
            return self._doubt_lock(probabilities, speech_s)
        weight_s = speech_s * min(1.0, speech_s / _FULL_WEIGHT_S)
        self._speech_s += weight_s
        for code, probability in probabilities:
            self._heard_s[code] += weight_s * probability
        best = self._likeliest()
        share = self._heard_s[best] / self._speech_s if self._speech_s else 0.0
        if (self._speech_s >= _ENOUGH_SPEECH_S and share >= _CLEAR_SHARE) or self._speech_s >= _AMPLE_SPEECH_S:
            self._locked = best
            return LanguageVerdict(language_code=best, newly_locked=share)
        return LanguageVerdict(language_code=best)

    def _likeliest(self) -> str:
        """Of equals the one named first."""
        return max(self._heard_s, key=self._heard_s.__getitem__) if self._heard_s else ""

    def _doubt_lock(self, probabilities: Sequence[LanguageProbability], speech_s: float) -> LanguageVerdict:
        code, probability = max(probabilities, key=lambda pair: pair[1])
        if speech_s < _TELLING_S:
            return LanguageVerdict(language_code=self._locked)
        contradicts = code != self._locked and probability >= _SURE_PROBABILITY
        if contradicts and (speech_s >= _LONG_S or code == self._doubt):
            self._locked, self._doubt = code, ""
            return LanguageVerdict(language_code=code, newly_locked=probability)
        self._doubt = code if contradicts else ""
        return LanguageVerdict(language_code=self._locked)


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentLanguage:
    """How one segment is asked for."""

    hints: DecodeHints
    lock: LanguageLock
    """Shared by all segments of a party whose hints ask for the same language."""

    def hints_now(self, *, is_final: bool) -> DecodeHints:
        """In the best guess so far."""
        if self.hints.language_code != AUTO_LANGUAGE:
            return self.hints
        return replace(self.hints, language_code=self.lock.guess or AUTO_LANGUAGE, detects_language=is_final)

    def hints_in(self, language_code: str) -> DecodeHints:
        """In a certain language."""
        return replace(self.hints, language_code=language_code)

    def hear(self, probabilities: Sequence[LanguageProbability], speech_s: float) -> LanguageVerdict:
        """See LanguageLock; where the caller named the language there is nothing to decide."""
        if self.hints.language_code != AUTO_LANGUAGE:
            return LanguageVerdict(language_code="")
        return self.lock.hear(probabilities, speech_s)


class LanguageEpochs:
    """The hints of one party through a call: an update holds for the segments that begin behind it."""

    def __init__(self, hints: DecodeHints) -> None:
        self._epochs = [(0, SegmentLanguage(hints=hints, lock=LanguageLock()))]

    @property
    def newest_hints(self) -> DecodeHints:
        """What the next update changes."""
        return self._epochs[-1][1].hints

    def update(self, hints: DecodeHints, from_sample: int) -> None:
        """Takes new hints; a language that was settled stays so unless they ask for another one."""
        newest = self._epochs[-1][1]
        lock = newest.lock if hints.language_code == newest.hints.language_code else LanguageLock()
        self._epochs.append((from_sample, SegmentLanguage(hints=hints, lock=lock)))

    def of(self, speech_start_sample: int) -> SegmentLanguage:
        """What is in force for speech that begins here, call clock at 16 kHz."""
        while len(self._epochs) > 1 and self._epochs[1][0] <= speech_start_sample:
            self._epochs.pop(0)  # segments come in order: nothing asks for it again
        return self._epochs[0][1]
