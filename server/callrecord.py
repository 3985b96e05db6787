"""What is told about one call when it ends: trailers, metrics, span and one log line, without its content."""

import logging
import time

from server.messages import CallConfig
from server.telemetry import CallTelemetry

CALL_ID_KEY = "x-call-id"
_INTERNAL = "INTERNAL"

_log = logging.getLogger(__name__)


class CallRecord:
    """One request from its first byte to its status."""

    def __init__(self, method: str, call_id: str, telemetry: CallTelemetry) -> None:
        self.call_id = call_id
        """From the request's metadata, then from its settings; empty when neither has one."""
        self.telemetry = telemetry
        self.audio_ms = 0
        self._method = method
        self._model = ""
        self._began_s = time.monotonic()

    @property
    def trailers(self) -> tuple[tuple[str, str], ...]:
        """Trailing metadata."""
        is_sendable = self.call_id and self.call_id.isascii() and self.call_id.isprintable()
        return ((CALL_ID_KEY, self.call_id),) if is_sendable else ()

    def started(self, config: CallConfig) -> None:
        """The settings are known and good."""
        self.call_id = config.info.call_id
        self._model = config.model
        self.telemetry.started(self.call_id, config.model)

    def ended(self, status: str, error: Exception | None = None) -> None:
        """The call ended with this gRPC status, perhaps because of an error."""
        self.telemetry.finished(status, self.audio_ms)
        fields: dict[str, object] = {
            "call_id": self.call_id,
            "method": self._method,
            "model": self._model,
            "status": status,
            "audio_s": self.audio_ms / 1000,
            "duration_s": round(time.monotonic() - self._began_s, 3),
        }
        if status == _INTERNAL:
            _log.error("call failed", exc_info=error, extra=fields)
        else:
            _log.info("call ended", extra={**fields, "reason": str(error)} if error else fields)
