"""What goes into and comes out of the client SDK: frozen values, free of any wire type.

Offsets are whole milliseconds of the call clock, which starts with the first audio of the call. `repr` never shows
transcripts: what people say in calls is personal data and must not reach a log.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Encoding(Enum):
    """How samples lie in bytes."""

    LINEAR16 = "LINEAR16"
    """Signed 16-bit little-endian PCM."""
    MULAW = "MULAW"
    """ITU-T G.711 mu-law."""
    ALAW = "ALAW"
    """ITU-T G.711 A-law."""

    @property
    def bytes_per_sample(self) -> int:
        """Width of one sample of one channel."""
        return 2 if self is Encoding.LINEAR16 else 1


class Task(Enum):
    """What the server does with the words it hears."""

    TRANSCRIBE = "TRANSCRIBE"
    TRANSLATE = "TRANSLATE"
    """Write them in English; needs a multilingual model."""


class Denoise(Enum):
    """What noise suppression is used for."""

    DEFAULT = "DENOISE_DEFAULT"
    OFF = "DENOISE_OFF"
    VAD_ONLY = "DENOISE_VAD_ONLY"
    MIX = "DENOISE_MIX"


class ChannelRole(Enum):
    """Who speaks on a channel."""

    UNKNOWN = "CHANNEL_ROLE_UNSPECIFIED"
    AGENT = "AGENT"
    CUSTOMER = "CUSTOMER"
    IVR = "IVR"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpointing:
    """When speech counts as begun and as ended; None means the server's default."""

    onset_ms: int | None = None
    hangover_ms: int | None = None
    max_segment_ms: int | None = None
    pre_roll_ms: int | None = None
    sensitivity: float | None = None
    """0 to 1; higher takes quieter or less certain sounds for speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """Everything a call tells the server before its audio; None or empty means the server's default."""

    encoding: Encoding = Encoding.LINEAR16
    sample_rate_hz: int
    num_channels: int = 1
    language_code: str = ""
    """BCP-47 ("en-US"), or "auto"."""
    allowed_language_codes: tuple[str, ...] = ()
    """With "auto": the languages to choose from."""
    model: str = ""
    task: Task = Task.TRANSCRIBE
    word_time_offsets: bool = False
    word_confidence: bool = False
    max_alternatives: int = 1
    denoise: Denoise = Denoise.DEFAULT
    endpointing: Endpointing = field(default_factory=Endpointing)
    interim_results: bool = True
    speech_activity: bool = True
    """Send SpeechActivity events."""
    call_id: str = ""
    tenant: str = ""
    agent_id: str = ""
    channel_roles: Mapping[int, ChannelRole] = field(default_factory=dict)
    """channel_tag (1..N) to role."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    resume_offset_ms: int | None = None
    """Set when this stream continues an earlier one: where in the call its audio starts."""

    @property
    def bytes_per_s(self) -> int:
        """Bytes of one second of audio, all channels together."""
        return self.sample_rate_hz * self.num_channels * self.encoding.bytes_per_sample


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


CallEvent = CallStarted | Result | SpeechActivity | Ack | Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """The words of one recording."""

    results: tuple[Result, ...]
    audio_duration_ms: int


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
