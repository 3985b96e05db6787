"""The bounded inbox of one call: what its caller sent, in order, and what overtakes it."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")
MIN_COST_BYTES = 64
"""What an item without audio takes up, so that nobody fills the inbox with empty messages."""


class Inbox(Generic[ItemT]):
    """Two lanes, one reader.

    The caller's lane is bounded: `put` waits for room, which stops reading from the network. The urgent lane
    (decode results, orders of the server) is not bounded and is taken first: an answer never waits behind audio.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity_bytes = capacity_bytes
        self._held_bytes = 0
        self._ordered: deque[tuple[ItemT, int]] = deque()
        self._urgent: deque[ItemT] = deque()
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._discarding = False

    @property
    def is_empty(self) -> bool:
        """Whether everything the caller sent has been taken."""
        return not self._ordered

    async def put(self, item: ItemT, num_bytes: int = 0) -> None:
        """Appends to the caller's lane as soon as there is room, which there is for any item in an empty inbox."""
        await self._room.wait()
        self.put_now(item, num_bytes)

    def put_now(self, item: ItemT, num_bytes: int = 0) -> None:
        """Appends to the caller's lane without waiting for room."""
        if self._discarding:
            return
        cost_bytes = max(num_bytes, MIN_COST_BYTES)
        self._ordered.append((item, cost_bytes))
        self._held_bytes += cost_bytes
        if self._held_bytes >= self._capacity_bytes:
            self._room.clear()
        self._arrived.set()

    def put_urgent(self, item: ItemT) -> None:
        """Appends to the urgent lane."""
        self._urgent.append(item)
        self._arrived.set()

    def discard(self) -> None:
        """Drops what the caller sent and all that it still sends."""
        self._discarding = True
        self._ordered.clear()
        self._held_bytes = 0
        self._room.set()

    async def get(self, *, urgent_only: bool = False) -> ItemT:
        """Takes the next item, urgent ones first; `urgent_only` leaves the caller's lane alone."""
        while True:
            if self._urgent:
                return self._urgent.popleft()
            if self._ordered and not urgent_only:
                return self._take_ordered()
            self._arrived.clear()
            await self._arrived.wait()

    def _take_ordered(self) -> ItemT:
        item, cost_bytes = self._ordered.popleft()
        self._held_bytes -= cost_bytes
        if self._held_bytes < self._capacity_bytes:
            self._room.set()
        return item
