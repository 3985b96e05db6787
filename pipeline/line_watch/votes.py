"""Blocks vote; a suspicion is told when nearly all of the newest ones share it."""

from collections import Counter, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_NEWEST = 10
_FEWEST = 4
_SHARE = 0.8

SuspectT = TypeVar("SuspectT", bound=Hashable)


class Votes(Generic[SuspectT]):
    """What the newest blocks that could be judged were suspected of; None: of nothing."""

    def __init__(self) -> None:
        self._newest: deque[SuspectT | None] = deque(maxlen=_NEWEST)

    @property
    def has_suspicion(self) -> bool:
        """Whether any of them is suspected of anything."""
        return any(vote is not None for vote in self._newest)

    def add(self, vote: SuspectT | None) -> SuspectT | None:
        """Takes the verdict on one block; returns what the line is surely suspected of."""
        self._newest.append(vote)
        suspect, count = Counter(self._newest).most_common(1)[0]
        return suspect if count >= max(_FEWEST, _SHARE * len(self._newest)) else None
