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
    ENCODING_MISMATCH = "ENCODING_MISMATCH"
    SAMPLE_RATE_MISMATCH = "SAMPLE_RATE_MISMATCH"
    POOR_LINE = "POOR_LINE"
    LANGUAGE_LOCKED = "LANGUAGE_LOCKED"


class SceneKind(Enum):
    """What else than speech is on a line."""

    DTMF = "DTMF"
    RINGBACK = "RINGBACK"
    BUSY = "BUSY"
    DIAL_TONE = "DIAL_TONE"
    SPECIAL_INFORMATION = "SPECIAL_INFORMATION"
    FAX = "FAX"
    MODEM = "MODEM"
    BEEP = "BEEP"
    MUSIC = "MUSIC"
    SILENCE = "SILENCE"
    DUPLICATE_CHANNEL = "DUPLICATE_CHANNEL"
    CROSSTALK = "CROSSTALK"
    MISSING_AUDIO = "MISSING_AUDIO"


class TurnKind(Enum):
    """What happened to a party's turn."""

    STARTED = "STARTED"
    ENDS_PROBABLY = "ENDS_PROBABLY"
    """It paused, and its words so far are decoded."""
    GOES_ON = "GOES_ON"
    """It spoke again after ENDS_PROBABLY."""
    ENDED = "ENDED"


class WithheldReason(Enum):
    """Why a segment gives no words on its channel."""

    CROSSTALK = "CROSSTALK"
    """It is the other channel's voice, faintly."""
    DUPLICATE = "DUPLICATE"
    """Channel 1 carries the same."""


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
    speech_start_ms: int
    """Where speech began, behind the pre-roll; first-interim latency counts from here."""
    speech_end_ms: int
    """Where speech was last heard; finalization latency counts from here."""
    end_reason: EndReason | None = None
    """Set in finals."""
    withheld: WithheldReason | None = None
    """Set in finals that have no words for this reason; for telemetry."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneEvent:
    """Something on a line that is no speech. What lasts is told twice: when it is recognised and when it is over."""

    kind: SceneKind
    channel_tag: int
    offset_ms: int
    """Where it begins."""
    duration_ms: int
    """How long it lasted, or has lasted so far."""
    is_over: bool
    digit: str = ""
    """DTMF only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent:
    """How a party's turn goes."""

    kind: TurnKind
    channel_tag: int
    offset_ms: int
    """Start of speech for STARTED and GOES_ON, end of speech for the others."""
    result_id: str = ""
    """ENDS_PROBABLY and ENDED."""
    transcript: str = field(default="", repr=False)


SessionEvent = RecognitionResult | SpeechActivity | AudioAcknowledged | SessionNotice | SceneEvent | TurnEvent
