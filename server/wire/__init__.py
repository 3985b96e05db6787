"""The only place that knows protobuf messages: requests in, responses and statuses out."""

from server.wire.requests import (
    MAX_GAP_MS,
    StreamingRequest,
    UnaryRequest,
    parse_message,
    parse_recognize,
    parse_start,
)
from server.wire.responses import (
    ServerInfoResponse,
    StreamingResponse,
    UnaryResponse,
    render_call_started,
    render_draining,
    render_event,
    render_recognized,
    render_server_info,
)
from server.wire.statuses import status_of

__all__ = [
    "MAX_GAP_MS",
    "ServerInfoResponse",
    "StreamingRequest",
    "StreamingResponse",
    "UnaryRequest",
    "UnaryResponse",
    "parse_message",
    "parse_recognize",
    "parse_start",
    "render_call_started",
    "render_draining",
    "render_event",
    "render_recognized",
    "render_server_info",
    "status_of",
]
