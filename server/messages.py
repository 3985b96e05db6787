"""What callers ask of the server and what it offers them, free of protobuf and gRPC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pipeline.config import DenoisingMode, EndpointingConfig, HintsUpdate, InterimConfig, SessionConfig, VadMode
from pipeline.engines.base import EngineInfo
from pipeline.types import DEFAULT_BOOST


class ChannelRole(Enum):
    """Who speaks on a channel."""

    UNKNOWN = "UNKNOWN"
    AGENT = "AGENT"
    CUSTOMER = "CUSTOMER"
    IVR = "IVR"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallInfo:
    """What the caller knows about the call."""

    call_id: str
    """The caller's own, or made by the server."""
    tenant: str = ""
    agent_id: str = ""
    channel_roles: Mapping[int, ChannelRole] = field(default_factory=dict)
    """channel_tag (1..N) to role."""
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Not interpreted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallConfig:
    """The settings in force for one call, defaults filled in."""

    session: SessionConfig
    model: str
    info: CallInfo
    word_times: bool = False
    word_confidences: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDefaults:
    """What holds for a call that does not say otherwise."""

    language_code: str = ""
    """Empty: the default of the call's model."""
    denoising: DenoisingMode = DenoisingMode.VAD_ONLY
    vad: VadMode = VadMode.COMBINED
    endpointing: EndpointingConfig = field(default_factory=EndpointingConfig)
    interim: InterimConfig = field(default_factory=InterimConfig)
    silence_after_ms: int = 10_000
    boost: float = DEFAULT_BOOST
    """Of speech contexts that have none of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a call may not exceed."""

    max_message_bytes: int
    max_recognize_s: float
    max_concurrent_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What this server offers to a call."""

    models: Mapping[str, EngineInfo]
    """By public name; the first is the default."""
    defaults: CallDefaults
    limits: Limits


@dataclass(frozen=True, slots=True)
class Audio:
    """Audio in the declared encoding."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Gap:
    """Audio that the caller does not have."""

    duration_ms: int


@dataclass(frozen=True, slots=True)
class Flush:
    """Make everything so far final."""


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """The caller is still there."""


@dataclass(frozen=True, slots=True)
class KeyPressed:
    """A key that the telephone system saw pressed."""

    digit: str
    channel_tag: int


@dataclass(frozen=True, slots=True)
class Update:
    """Other hints for what begins from here on."""

    hints: HintsUpdate


CallMessage = Audio | Gap | Flush | KeepAlive | KeyPressed | Update
"""What a caller sends once the call has started."""
