"""One table from errors to gRPC statuses with google.rpc details."""

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from grpc_status import rpc_status

from pipeline.errors import ComponentMissingError, EngineError, InvalidAudioError, InvalidConfigError
from server.errors import CallCutError, CapacityError, DrainingError, EngineStalledError

_DOMAIN = "talkpath.speech.v1"


def _config_field(error: Any) -> list[Message]:
    violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.message)
    return [error_details_pb2.BadRequest(field_violations=[violation])]


def _audio_field(error: Any) -> list[Message]:
    violation = error_details_pb2.BadRequest.FieldViolation(field="audio_content", description=str(error))
    return [error_details_pb2.BadRequest(field_violations=[violation])]


def _retry(error: Any) -> list[Message]:
    delay = Duration()
    delay.FromMilliseconds(round(error.retry_after_s * 1000))
    return [error_details_pb2.RetryInfo(retry_delay=delay)]


def _retry_from_offset(error: Any) -> list[Message]:
    metadata = {"audio_offset_ms": str(error.audio_offset_ms)}
    reason = error_details_pb2.ErrorInfo(reason="SERVER_DRAINING", domain=_DOMAIN, metadata=metadata)
    return [*_retry(error), reason]


def _nothing(_: Any) -> list[Message]:
    return []


_TABLE: tuple[tuple[type[Exception], grpc.StatusCode, Callable[[Any], list[Message]]], ...] = (
    (InvalidConfigError, grpc.StatusCode.INVALID_ARGUMENT, _config_field),
    (InvalidAudioError, grpc.StatusCode.INVALID_ARGUMENT, _audio_field),
    (CapacityError, grpc.StatusCode.RESOURCE_EXHAUSTED, _retry),
    (DrainingError, grpc.StatusCode.UNAVAILABLE, _retry),
    (CallCutError, grpc.StatusCode.UNAVAILABLE, _retry_from_offset),
    (EngineStalledError, grpc.StatusCode.UNAVAILABLE, _retry),
    (EngineError, grpc.StatusCode.UNAVAILABLE, _nothing),
    (ComponentMissingError, grpc.StatusCode.FAILED_PRECONDITION, _nothing),
)


def status_of(error: Exception) -> grpc.Status:
    """The status that a call ends with; unforeseen errors tell the caller nothing but INTERNAL."""
    for kind, code, details in _TABLE:
        if isinstance(error, kind):
            return _status(code, str(error), details(error))
    return _status(grpc.StatusCode.INTERNAL, "the server failed; its log says why", [])


def _status(code: grpc.StatusCode, message: str, details: list[Message]) -> grpc.Status:
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    result: grpc.Status = rpc_status.to_status(status)
    return result
