"""What a server is and can do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """A model the server has loaded."""

    name: str
    language_codes: tuple[str, ...]
    precision: str
    device: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server accepts."""

    max_message_bytes: int
    max_recognize_duration_ms: int
    max_concurrent_calls: int
    max_channel_count: int
    sample_rates_hz: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """What the server is and can do."""

    version: str
    models: tuple[ModelInfo, ...]
    """The first is the default."""
    limits: Limits
