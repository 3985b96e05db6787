"""What lasts on a line, as whoever watches for it tells it: when it is recognised and when it is over."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """In milliseconds of the channel's audio."""

    begin_ms: int
    end_ms: int
    """So far, while it is not over."""
    is_over: bool
