"""Puts the results of a call's channels into one order: what was said first is read first.

Theory of operation. A final is held back while another channel has a segment that began earlier, is already closed and
only waits for its words. It never waits for a party that is still speaking: somebody who talks for 20 s would hold up
every "yes" of the other. So a reader who appends finals as they come has them in the order of their start, except
those that began while a longer utterance was under way, and sorts by start time if that matters.

Rules:
1. When a final goes out, no other channel owes the final of a closed segment that began earlier.
2. Results of a channel keep their order: behind a final that is held, the channel's later results, notices and turn
   events wait; the end of a turn comes behind its last final.
3. Nothing waits longer than the decode of a segment that is closed; that has a bound of its own.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol

from pipeline.events import RecognitionResult, SessionEvent, SessionNotice, TurnEvent, TurnKind
from pipeline.types import SAMPLES_PER_MS, CancelDecode, DecodeRequest

_Effect = SessionEvent | DecodeRequest | CancelDecode
_Ordered = RecognitionResult | SessionNotice | TurnEvent
_NEVER_MS = 1 << 62


class _Pending(Protocol):
    @property
    def earliest_closed_sample(self) -> int | None: ...


class CallOrder:
    """The results of all channels of one call, on their way out."""

    def __init__(self, channels: Mapping[int, _Pending]) -> None:
        """Takes what tells each channel's first segment that is closed and has no final; by channel_tag."""
        self._channels = channels
        self._held: dict[int, deque[_Ordered]] = {tag: deque() for tag in channels}

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held back."""
        return not any(self._held.values())

    @property
    def held_starts_ms(self) -> list[int]:
        """Where each channel's first result that is held back begins."""
        return [_start_ms(held[0]) for held in self._held.values() if held]

    def put(self, effects: Iterable[_Effect]) -> list[_Effect]:
        """Takes effects of one channel; returns what may go out now, in order."""
        passed: list[_Effect] = []
        for effect in effects:
            if isinstance(effect, _Ordered) and (_must_wait(effect) or self._held[effect.channel_tag]):
                self._held[effect.channel_tag].append(effect)
            else:
                passed.append(effect)
        return passed + self._release()

    def _release(self) -> list[_Effect]:
        released: list[_Effect] = []
        while ready := [held[0] for tag, held in self._held.items() if held and self._may_go(tag, held[0])]:
            first = min(ready, key=lambda ordered: (_start_ms(ordered), ordered.channel_tag))
            released.append(self._held[first.channel_tag].popleft())
        return released

    def _may_go(self, tag: int, result: _Ordered) -> bool:
        if not isinstance(result, RecognitionResult) or not result.is_final:
            return True
        for other, channel in self._channels.items():
            if other == tag:
                continue
            owed = channel.earliest_closed_sample
            if owed is not None and owed // SAMPLES_PER_MS < result.result_start_ms:
                return False
            held = self._held[other]
            if held and _start_ms(held[0]) < result.result_start_ms:
                return False
        return True


def _must_wait(ordered: _Ordered) -> bool:
    """Whether it goes out with the results that are held back, if only for this moment."""
    match ordered:
        case RecognitionResult():
            return ordered.is_final
        case TurnEvent():
            return ordered.kind is TurnKind.ENDED
        case SessionNotice():
            return False


def _start_ms(ordered: _Ordered) -> int:
    return ordered.result_start_ms if isinstance(ordered, RecognitionResult) else _NEVER_MS
