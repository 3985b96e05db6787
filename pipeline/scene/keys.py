"""Keys that come twice: as tones in the audio and, from telephone systems that see them, as a message (RFC 4733).

Each press is told once, whichever way it comes first. A press that came one way takes one of the same digit from the
other way off the list, if it lies near in time, so that "11" stays two presses however its four reports mix.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

_SAME_PRESS_MS = 300
_REMEMBERED_PRESSES = 32


class KeySource(Enum):
    """How a key came."""

    AUDIO = auto()
    MESSAGE = auto()


@dataclass(slots=True)
class _Told:
    digit: str
    source: KeySource
    begin_ms: int
    end_ms: int
    is_confirmed: bool = False


class KeyLedger:
    """One channel's presses."""

    def __init__(self) -> None:
        self._told: deque[_Told] = deque(maxlen=_REMEMBERED_PRESSES)

    def is_news(self, digit: str, source: KeySource, begin_ms: int, end_ms: int) -> bool:
        """Takes a press; False if it came the other way before."""
        for told in self._told:
            is_same = told.digit == digit and told.source is not source and not told.is_confirmed
            is_near = begin_ms <= told.end_ms + _SAME_PRESS_MS and told.begin_ms <= end_ms + _SAME_PRESS_MS
            if is_same and is_near:
                told.is_confirmed = True
                return False
        self._told.append(_Told(digit, source, begin_ms, end_ms))
        return True
