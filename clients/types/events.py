"""What a call tells its caller.

Offsets are whole milliseconds of the call clock, which starts with the first audio of the call. `repr` never shows
transcripts: what people say in calls is personal data and must not reach a log.
"""

from dataclasses import dataclass, field
from enum import Enum

from clients.types.settings import CallSettings


class EndReason(Enum):
    """Why a segment ended."""

    SILENCE = "SILENCE"
    MAX_LENGTH = "MAX_LENGTH"
    FLUSH = "FLUSH"
    END_OF_STREAM = "END_OF_STREAM"


class ActivityKind(Enum):
    """Whether speech began or ended."""

    BEGIN = "BEGIN"
    END = "END"


class NoticeCode(Enum):
    """Kinds of notices; UNKNOWN stands for one that this client is too old to know."""

    UNKNOWN = "CODE_UNSPECIFIED"
    SERVER_DRAINING = "SERVER_DRAINING"
    DECODE_FAILED = "DECODE_FAILED"
    WAV_HEADER_SKIPPED = "WAV_HEADER_SKIPPED"
    FALLING_BEHIND = "FALLING_BEHIND"
    ENCODING_MISMATCH = "ENCODING_MISMATCH"
    SAMPLE_RATE_MISMATCH = "SAMPLE_RATE_MISMATCH"
    POOR_LINE = "POOR_LINE"
    LANGUAGE_LOCKED = "LANGUAGE_LOCKED"


class SceneKind(Enum):
    """What else than speech is on a line; UNKNOWN stands for what this client is too old to know."""

    UNKNOWN = "KIND_UNSPECIFIED"
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
    """What happened to a party's turn; UNKNOWN stands for what this client is too old to know."""

    UNKNOWN = "KIND_UNSPECIFIED"
    STARTED = "STARTED"
    ENDS_PROBABLY = "ENDS_PROBABLY"
    """It paused; the text is what the final will be, unless it goes on."""
    GOES_ON = "GOES_ON"
    """It spoke again after ENDS_PROBABLY."""
    ENDED = "ENDED"
    """It has finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word with its time in the call clock."""

    text: str = field(repr=False)
    start_ms: int
    end_ms: int
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One reading of a segment."""

    transcript: str = field(repr=False)
    confidence: float
    words: tuple[Word, ...] = field(default=(), repr=False)
    formatted_transcript: str = field(default="", repr=False)
    """Finals: the transcript with its numbers in digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """First event of every call."""

    call_id: str
    settings: CallSettings
    """The settings in force, the server's defaults filled in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Words of one segment on one channel."""

    result_id: str
    """Shared by all interims and the final of a segment."""
    channel_tag: int
    """1..N."""
    alternatives: tuple[Alternative, ...] = field(repr=False)
    """Best first. Empty in a final without words: it takes back the interims of its segment."""
    is_final: bool
    stability: float = 0.0
    """0 to 1: how likely it is that an interim will not change."""
    stable_length: int = 0
    """Interims only: this many leading characters of the transcript will not change."""
    language_code: str = ""
    start_ms: int
    end_ms: int
    end_reason: EndReason | None = None
    """Finals only."""
    latency_ms: float | None = None
    """Finals only: end of speech to this result, as the server measured it."""

    @property
    def transcript(self) -> str:
        """The best reading; empty when there is none."""
        return self.alternatives[0].transcript if self.alternatives else ""

    @property
    def words(self) -> tuple[Word, ...]:
        """Words of the best reading, when the call asked for them."""
        return self.alternatives[0].words if self.alternatives else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechActivity:
    """Speech began or ended on a channel."""

    kind: ActivityKind
    channel_tag: int
    offset_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """All audio of the call before this offset is final."""

    offset_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the caller should know."""

    code: NoticeCode
    message: str
    channel_tag: int = 0
    """1..N, or 0 for the whole call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Something on the line that is no speech. What lasts is told twice: when it is recognised and when it is over."""

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
class Turn:
    """How a party's turn goes."""

    kind: TurnKind
    channel_tag: int
    offset_ms: int
    """Start of speech for STARTED and GOES_ON, end of speech for the others."""
    result_id: str = ""
    """ENDS_PROBABLY and ENDED."""
    transcript: str = field(default="", repr=False)


CallEvent = CallStarted | Result | SpeechActivity | Ack | Notice | Scene | Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """The words of one recording."""

    results: tuple[Result, ...]
    audio_duration_ms: int
