"""Nobody has said anything on a channel for long: told when it has become long, and when somebody speaks."""

from pipeline.scene.lasting import Lasting


class SilenceWatch:
    """One channel's silence; what counts as speech is decided by endpointing."""

    def __init__(self, after_ms: int) -> None:
        self._after_ms = after_ms
        self._begin_ms = 0
        self._is_told = False

    def advance(self, now_ms: int) -> Lasting | None:
        """Time has passed without speech."""
        if self._is_told or now_ms - self._begin_ms < self._after_ms:
            return None
        self._is_told = True
        return Lasting(begin_ms=self._begin_ms, end_ms=now_ms, is_over=False)

    def speech_began(self, begin_ms: int) -> Lasting | None:
        """Somebody speaks."""
        was_told, self._is_told = self._is_told, False
        if not was_told:
            return None
        return Lasting(begin_ms=self._begin_ms, end_ms=max(begin_ms, self._begin_ms), is_over=True)

    def speech_ended(self, end_ms: int) -> None:
        """Nobody speaks any more."""
        self._begin_ms = end_ms

    def end(self, now_ms: int) -> Lasting | None:
        """The call ends."""
        return self.speech_began(now_ms)
