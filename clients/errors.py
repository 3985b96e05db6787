"""gRPC statuses as one typed error."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, cast

import grpc
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from grpc_status import rpc_status

MS_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One setting the server did not accept."""

    field: str
    description: str


class RecognitionError(Exception):
    """A call, or a request, that the server refused or could not finish.

    Attributes:
        status: Name of the gRPC status ("INVALID_ARGUMENT"). "OK" when the server ended a call before its audio ended.
        message: The server's words.
        field_violations: Settings that were not accepted.
        retry_after_s: When it is worth trying again; None when the server did not say.
    """

    def __init__(
        self,
        status: str,
        message: str,
        field_violations: tuple[FieldViolation, ...] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message
        self.field_violations = field_violations
        self.retry_after_s = retry_after_s


class EndingStream(Protocol):
    """What is asked of a `grpc.aio` call about its end."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Calls back once the status is known."""

    def code(self) -> Coroutine[Any, Any, grpc.StatusCode]:
        """The status; waits for it."""

    def details(self) -> Coroutine[Any, Any, str]:
        """The server's words; waits for them."""

    def trailing_metadata(self) -> Coroutine[Any, Any, Any]:
        """Rich details are in here; waits for it."""


class StreamEnd:
    """The status with which the server ended a stream.

    A write that fails because the server has just ended the stream makes grpc.aio replace the server's status with
    INTERNAL (grpc/grpc#36066), which would hide nearly every refusal from a caller who is sending audio. So the
    status is taken at the moment it arrives.
    """

    def __init__(self, stream: EndingStream) -> None:
        self._error: grpc.aio.AioRpcError | None = None
        stream.add_done_callback(self._take)

    def _take(self, stream: EndingStream) -> None:
        self._error = grpc.aio.AioRpcError(
            _result_of(stream.code()),
            grpc.aio.Metadata(),
            _result_of(stream.trailing_metadata()) or grpc.aio.Metadata(),
            _result_of(stream.details()),
            None,
        )

    def error(self, seen: grpc.aio.AioRpcError | None = None) -> RecognitionError | None:
        """The error with which the stream ended; None if it ended well. `seen` counts when no status arrived."""
        error = self._error or seen
        if error is None or error.code() is grpc.StatusCode.OK:
            return None
        return recognition_error(error)


def _result_of(known: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that has nothing left to wait for."""
    try:
        known.send(None)
    except StopIteration as done:
        return done.value
    known.close()
    raise RuntimeError("grpc.aio reports the end of a stream before its status is known")


def recognition_error(error: grpc.aio.AioRpcError) -> RecognitionError:
    """Translates what grpc.aio raised, rich details included."""
    violations, retry_after_s = _details(error)
    return RecognitionError(error.code().name, error.details() or "", violations, retry_after_s)


def _details(error: grpc.aio.AioRpcError) -> tuple[tuple[FieldViolation, ...], float | None]:
    violations: list[FieldViolation] = []
    retry_after_s: float | None = None
    try:
        status = rpc_status.from_call(cast(grpc.Call, error))  # has all that is read of a call
    except ValueError:  # details that contradict the status: the status itself still holds
        status = None
    for detail in status.details if status else ():
        bad_request, retry_info = error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
        if detail.Unpack(bad_request):
            violations += [FieldViolation(item.field, item.description) for item in bad_request.field_violations]
        elif detail.Unpack(retry_info):
            retry_after_s = retry_info.retry_delay.ToMilliseconds() / MS_PER_S
    return tuple(violations), retry_after_s
