"""Quality gates, the same for single and batched requests: is a text believable, and where does it begin to loop?"""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pipeline.errors import InvalidConfigError

FALLBACK_TEMPERATURES = (0.2, 0.4, 0.6, 0.8, 1.0)

_MIN_LOOP_TOKENS = 20
_MIN_LOOP_REPEATS = 5
"""People do say "no no no" or a digit four times; a loop is longer than both limits."""
_MAX_LOOP_PERIOD = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class GateThresholds:
    """Beyond these a text is not believed."""

    max_compression_ratio: float = 2.4
    """Bytes of the text over bytes of its zlib form; loops compress well."""
    min_mean_log_prob: float = -1.0
    """Natural logarithm, mean over the tokens."""
    min_interim_log_prob: float = -1.5
    """The same for interims: the first guess at half a word is unsure, and soon replaced."""
    max_no_speech_prob: float = 0.5
    """Above it there are words only if they are likelier than `min_evident_log_prob`."""
    min_evident_log_prob: float = -0.35
    """What "you" and "thank you" on silence, noise or music do not reach; OpenAI's -1.0 lets them pass."""
    max_doubtful_no_speech_prob: float = 0.2
    """Above it, a final that no temperature made believable has no words."""
    min_level_dbfs: float = -65.0
    """Audio whose loudest 20 ms are quieter holds no words."""
    doubtful_speech_score: float = 0.6
    """Voice activity up to this score says nothing: music and noise reach it."""
    sure_speech_score: float = 0.85
    """From here on somebody speaks: a short word that the model is unsure of is not taken for noise."""
    sure_max_no_speech_prob: float = 0.75
    """Instead of `max_no_speech_prob` and `max_doubtful_no_speech_prob` where somebody surely speaks; music has
    more."""
    sure_min_log_prob: float = -2.0
    """Instead of `min_mean_log_prob` and `min_interim_log_prob` there."""

    def __post_init__(self) -> None:
        """Checks the limits."""
        limits = {
            "gates.max_compression_ratio": (self.max_compression_ratio, 1.0, 100.0),
            "gates.min_mean_log_prob": (self.min_mean_log_prob, -100.0, 0.0),
            "gates.min_interim_log_prob": (self.min_interim_log_prob, -100.0, 0.0),
            "gates.max_no_speech_prob": (self.max_no_speech_prob, 0.0, 1.0),
            "gates.min_evident_log_prob": (self.min_evident_log_prob, -100.0, 0.0),
            "gates.max_doubtful_no_speech_prob": (self.max_doubtful_no_speech_prob, 0.0, 1.0),
            "gates.min_level_dbfs": (self.min_level_dbfs, -200.0, 0.0),
            "gates.doubtful_speech_score": (self.doubtful_speech_score, 0.0, 1.0),
            "gates.sure_speech_score": (self.sure_speech_score, self.doubtful_speech_score, 1.0),
            "gates.sure_max_no_speech_prob": (self.sure_max_no_speech_prob, 0.0, 1.0),
            "gates.sure_min_log_prob": (self.sure_min_log_prob, -100.0, 0.0),
        }
        for name, (value, low, high) in limits.items():
            if not low <= value <= high:
                raise InvalidConfigError(name, f"{value} is outside {low} to {high}; use a value in that range")

    def given(self, speech_score: float | None) -> "GateThresholds":
        """The thresholds for audio of which voice activity is so sure; None: it was not asked."""
        span = self.sure_speech_score - self.doubtful_speech_score
        if speech_score is None or speech_score <= self.doubtful_speech_score or span <= 0:
            return self
        share = min(1.0, (speech_score - self.doubtful_speech_score) / span)
        no_speech, log_prob = self.sure_max_no_speech_prob, self.sure_min_log_prob
        return replace(
            self,
            max_no_speech_prob=_raised(self.max_no_speech_prob, no_speech, share),
            max_doubtful_no_speech_prob=_raised(self.max_doubtful_no_speech_prob, no_speech, share),
            min_mean_log_prob=_lowered(self.min_mean_log_prob, log_prob, share),
            min_interim_log_prob=_lowered(self.min_interim_log_prob, log_prob, share),
        )


def _raised(value: float, high: float, share: float) -> float:
    return value + max(0.0, high - value) * share


def _lowered(value: float, low: float, share: float) -> float:
    return value + min(0.0, low - value) * share


class Verdict(Enum):
    """What a gate says of a text."""

    ACCEPTED = "accepted"
    NO_SPEECH = "no_speech"
    """Nobody spoke: there are no words."""
    DOUBTFUL = "doubtful"
    """A loop or a guess: a final is decoded again, an interim is dropped."""


def compression_ratio(text: str) -> float:
    """Bytes over zlib bytes; 0 for an empty text."""
    raw = text.encode("utf-8")
    return len(raw) / len(zlib.compress(raw)) if raw else 0.0


def judge(
    thresholds: GateThresholds,
    text: str,
    tokens: Sequence[int],
    mean_log_prob: float,
    no_speech_prob: float,
    *,
    may_loop: bool = False,
) -> Verdict:
    """Says whether a decoded text is believable; one that repeats itself only if its audio does (`may_loop`)."""
    # Written with `not`, so that NaN fails.
    evident = not no_speech_prob > thresholds.max_no_speech_prob or mean_log_prob >= thresholds.min_evident_log_prob
    if not evident:
        return Verdict.NO_SPEECH
    unlikely = not mean_log_prob >= thresholds.min_mean_log_prob
    looping = not may_loop and repeats_itself(thresholds, text, tokens)
    return Verdict.DOUBTFUL if unlikely or looping else Verdict.ACCEPTED


def repeats_itself(thresholds: GateThresholds, text: str, tokens: Sequence[int]) -> bool:
    """Whether a text says the same more often than people mostly do."""
    return is_looping(tokens) or compression_ratio(text) > thresholds.max_compression_ratio


def _loop_at_end(tokens: Sequence[int]) -> tuple[int, int]:
    """Period and first token of the longest loop that runs to the end; (0, len) when there is none."""
    for period in range(1, min(_MAX_LOOP_PERIOD, len(tokens) // _MIN_LOOP_REPEATS) + 1):
        start = len(tokens) - period
        while start > 0 and tokens[start - 1] == tokens[start - 1 + period]:
            start -= 1
        length = len(tokens) - start
        if length >= max(_MIN_LOOP_TOKENS, period * _MIN_LOOP_REPEATS):
            return period, start
    return 0, len(tokens)


def is_looping(tokens: Sequence[int]) -> bool:
    """Whether the tokens end in an n-gram that repeats too often to be speech."""
    if len(tokens) < _MIN_LOOP_TOKENS:
        return False
    return _loop_at_end(tokens)[0] > 0


def loop_cut(tokens: Sequence[int], num_kept: int = 1) -> int:
    """How many tokens to keep so that a loop at the end is said so often; all where there is no loop."""
    period, start = _loop_at_end(tokens)
    return min(len(tokens), start + period * num_kept) if period else len(tokens)


def confidence(mean_log_prob: float) -> float:
    """Probability for people: 0 to 1, two decimals, so that tiny differences between batches do not show."""
    return round(min(1.0, math.exp(mean_log_prob)), 2)
