"""What a recognition session says to the outside. Offsets are milliseconds of the call clock."""

from dataclasses import dataclass, field
from enum import Enum

from pipeline.types import EndReason, Hypothesis


class ActivityKind(Enum):
    """Whether speech began or ended."""

    BEGIN = "BEGIN"
    END = "END"


class NoticeCode(Enum):
    """Kinds of notices."""

    DECODE_FAILED = "DECODE_FAILED"
    WAV_HEADER_SKIPPED = "WAV_HEADER_SKIPPED"
    FALLING_BEHIND = "FALLING_BEHIND"
    """Sent by whoever drives a session, since that knows the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecognitionResult:
    """Words of one segment. Word times in `alternatives` are call clock."""

    result_id: str
    channel_tag: int
    alternatives: tuple[Hypothesis, ...] = field(repr=False)
    """Best first; empty in a final without words, which takes back the interims of its segment."""
    is_final: bool
    stability: float
    """0 to 1: likelihood that an interim will not change; 1 for finals."""
    stable_length: int
    """Leading characters of the first transcript that will not change."""
    result_start_ms: int
    result_end_ms: int
    speech_end_ms: int
    """Where speech was last heard; finalization latency counts from here."""
    end_reason: EndReason | None = None
    """Set in finals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechActivity:
    """Speech began or ended on a channel."""

    kind: ActivityKind
    channel_tag: int
    offset_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioAcknowledged:
    """All audio of the call before this offset is final."""

    offset_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionNotice:
    """Something the caller should know."""

    code: NoticeCode
    message: str
    channel_tag: int = 0
    """0 for the whole call."""


SessionEvent = RecognitionResult | SpeechActivity | AudioAcknowledged | SessionNotice
