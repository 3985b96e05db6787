"""Whether the results of a live call keep up with its audio."""

_RECOVERED_SHARE = 0.5
"""Back within this share of the limit a call may be told again."""


class LagWatch:
    """Decides when a caller is told that its results fall behind: once each time it happens."""

    def __init__(self, limit_s: float) -> None:
        """`limit_s` is the age of the newest audio in a result that is too old; 0 never tells."""
        self._limit_s = limit_s
        self._is_behind = False

    def falls_behind(self, lag_s: float) -> bool:
        """A result was sent this long after the newest audio in it had arrived; whether to tell the caller now."""
        if not self._limit_s:
            return False
        was_behind = self._is_behind
        if lag_s > self._limit_s:
            self._is_behind = True
        elif lag_s < _RECOVERED_SHARE * self._limit_s:
            self._is_behind = False
        return self._is_behind and not was_behind
