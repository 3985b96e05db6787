"""How often a channel gets an interim, so that a busy engine keeps room for finals. Pure: time is an argument.

Every channel asks for an interim as often as it likes. What the engine can give is measured: with `n` channels speaking
and an interim that takes `c` seconds, one each `n * c / lanes` seconds would fill it. Some of its time is kept for
finals, so that none of them stands in a queue of interims.
"""

_INTERIM_SHARE = 0.85
"""Of the engine's time, for interims."""
_MAX_INTERVAL_S = 3.0
_ACTIVE_S = 3.0
"""A channel served within this time counts as speaking."""
_COST_MEMORY = 0.9
"""Weight of what was known against what is new."""

ChannelKey = tuple[str, int]


class InterimPacer:
    """Follows what interims cost and when each channel had its last one."""

    def __init__(self) -> None:
        self._served_s: dict[ChannelKey, float] = {}
        self._cost_s = 0.0

    def served(self, channel: ChannelKey, now_s: float) -> None:
        """An interim of this channel goes to the engine."""
        self._served_s.pop(channel, None)
        self._served_s[channel] = now_s
        oldest = next(iter(self._served_s))
        while now_s - self._served_s[oldest] > _ACTIVE_S:
            del self._served_s[oldest]
            oldest = next(iter(self._served_s))

    def measured(self, num_interims: int, compute_s: float) -> None:
        """A batch of interims took this long."""
        cost_s = compute_s / num_interims
        self._cost_s = _COST_MEMORY * self._cost_s + (1 - _COST_MEMORY) * cost_s if self._cost_s else cost_s

    def forget(self, session_id: str) -> None:
        """A call has left."""
        for key in [key for key in self._served_s if key[0] == session_id]:
            del self._served_s[key]

    def ready_s(self, channel: ChannelKey, num_lanes: int) -> float:
        """From when on the channel may have its next interim; minus infinity for one that had none lately."""
        last_s = self._served_s.get(channel)
        return float("-inf") if last_s is None else last_s + self.interval_s(num_lanes)

    def interval_s(self, num_lanes: int) -> float:
        """Time between two interims of a channel."""
        needed_s = len(self._served_s) * self._cost_s / (num_lanes * _INTERIM_SHARE)
        return min(_MAX_INTERVAL_S, needed_s)
