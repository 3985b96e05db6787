"""Moves the call clock on while a live caller sends nothing, as PBXs do on hold.

Off unless the operator asks for it (`server.idle_gap_ms`): audio that is merely late looks the same as audio that
does not exist, and filling in for late audio would shift every later offset and make finals depend on the network.
Senders that know better send `Control.gap`. Only a caller whose clock is behind real time is filled, so that
callers who send ahead (recordings) are never touched.
"""

import asyncio
import time
from collections.abc import Callable

from pipeline.types import FRAME_MS
from server.arrivals import ArrivalLog

_MS_PER_S = 1000


class IdleWatch:
    """One timer a call, armed for when the caller will have been silent long enough."""

    def __init__(self, idle_gap_ms: int, arrivals: ArrivalLog, fill: Callable[[int], bool]) -> None:
        """`fill` takes how many milliseconds are missing, and says whether it used them. 0 ms: off."""
        self._idle_gap_ms = idle_gap_ms
        self._arrivals = arrivals
        self._fill = fill
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Starts watching; needs a running event loop."""
        if self._idle_gap_ms:
            self._arm(self._idle_gap_ms / _MS_PER_S)

    def stop(self) -> None:
        """Stops watching; may be called again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, delay_s: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._check)

    def _check(self) -> None:
        now_s = time.monotonic()
        idle_s = self._idle_gap_ms / _MS_PER_S
        silent_s = now_s - self._arrivals.last_audio_s
        if silent_s < idle_s:
            self._arm(idle_s - silent_s)
            return
        missing_ms = self._arrivals.lag_ms(now_s) // FRAME_MS * FRAME_MS
        if missing_ms >= self._idle_gap_ms and self._fill(missing_ms):
            self._arrivals.add_gap(missing_ms, now_s)
        self._arm(idle_s)
