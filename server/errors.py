"""Errors that end a call for the server's reasons; what a caller did wrong is in `pipeline.errors`."""

from pipeline.errors import TalkpathError


class StartupError(TalkpathError):
    """The server cannot start as it was asked to; one line for the operator."""


class CapacityError(TalkpathError):
    """As many calls as the server takes are live."""

    def __init__(self, max_concurrent_calls: int, retry_after_s: float) -> None:
        """`retry_after_s`: when it makes sense to try again."""
        super().__init__(
            f"all {max_concurrent_calls} calls that this server takes at once (server.max_concurrent_calls) are live; "
            f"retry after {retry_after_s:g} s or use another server"
        )
        self.retry_after_s = retry_after_s


class DrainingError(TalkpathError):
    """The server is shutting down and takes no new calls."""

    def __init__(self, retry_after_s: float) -> None:
        """`retry_after_s`: when it makes sense to try again."""
        super().__init__("the server is shutting down and takes no new calls; use another server")
        self.retry_after_s = retry_after_s


class CallCutError(TalkpathError):
    """The server's shutdown ended a live call; everything received is final."""

    def __init__(self, audio_offset_ms: int) -> None:
        """`audio_offset_ms`: where in the call to go on, for `call.resume.audio_offset_ms`."""
        super().__init__(
            f"the server is shutting down; open a new stream with call.resume.audio_offset_ms {audio_offset_ms}"
        )
        self.audio_offset_ms = audio_offset_ms
        self.retry_after_s = 0.0


class EngineStalledError(TalkpathError):
    """The engine owes answers for too long."""

    def __init__(self, timeout_s: float) -> None:
        """`timeout_s`: how long it was waited for."""
        super().__init__(
            f"the engine has not answered within {timeout_s:g} s (server.decode_timeout_s); retry the call"
        )
        self.retry_after_s = timeout_s
