"""Who may begin a call: at most so many at once, and nobody while the server drains."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from server.errors import CapacityError, DrainingError


class Admission:
    """Counts live calls."""

    def __init__(self, max_concurrent_calls: int, retry_after_s: float) -> None:
        self._max_concurrent_calls = max_concurrent_calls
        self._retry_after_s = retry_after_s
        self._num_active = 0
        self._draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def num_active(self) -> int:
        """Live calls."""
        return self._num_active

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Holds a slot for the length of a call.

        Raises:
            DrainingError: the server is shutting down.
            CapacityError: all slots are taken.
        """
        if self._draining:
            raise DrainingError(self._retry_after_s)
        if self._num_active >= self._max_concurrent_calls:
            raise CapacityError(self._max_concurrent_calls, self._retry_after_s)
        self._num_active += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._num_active -= 1
            if not self._num_active:
                self._idle.set()

    def refuse_new_calls(self) -> None:
        """From here on nobody is admitted."""
        self._draining = True

    async def wait_until_idle(self) -> None:
        """Returns when no call is live."""
        await self._idle.wait()
