"""When which audio is due: absolute deadlines, so that small delays never add up."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

MS_PER_S = 1_000


class Pacer:
    """Releases audio as a live call would: a chunk is due once its last sample has been spoken.

    Speed 1 is real time, 2 twice as fast, 0 without waiting.
    """

    def __init__(
        self,
        speed: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._speed = speed
        self._clock = clock
        self._sleep = sleep
        self._start_s = clock()

    def start(self) -> None:
        """The call begins now."""
        self._start_s = self._clock()

    def elapsed_s(self) -> float:
        """Since the call began."""
        return self._clock() - self._start_s

    async def wait_for(self, audio_ms: float) -> None:
        """Returns once the audio before this offset has been spoken; at once when it is late already."""
        if self._speed == 0:
            return
        delay_s = audio_ms / MS_PER_S / self._speed - self.elapsed_s()
        if delay_s > 0:
            await self._sleep(delay_s)


def chunk_bounds(num_samples: int, sample_rate_hz: int, chunk_ms: int) -> Iterator[tuple[int, int]]:
    """First and past-the-end sample of each chunk; chunks of a fraction of a sample are spread, not summed up."""
    start, count = 0, 0
    while start < num_samples:
        count += 1
        end = min(num_samples, max(start + 1, count * chunk_ms * sample_rate_hz // MS_PER_S))
        yield start, end
        start = end
