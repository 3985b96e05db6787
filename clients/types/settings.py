"""What a caller tells the server before its audio."""

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


class Profile(Enum):
    """What kind of speech is expected; sets the durations that are not given."""

    DEFAULT = "PROFILE_UNSPECIFIED"
    """The server's."""
    CONVERSATION = "CONVERSATION"
    SHORT_ANSWER = "SHORT_ANSWER"
    DICTATION = "DICTATION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpointing:
    """When speech counts as begun and as ended; None means the profile's value."""

    profile: Profile = Profile.DEFAULT
    onset_ms: int | None = None
    hangover_ms: int | None = None
    number_hangover_ms: int | None = None
    """Pause within a number that does not end it."""
    max_segment_ms: int | None = None
    pre_roll_ms: int | None = None
    sensitivity: float | None = None
    """0 to 1; higher takes quieter or less certain sounds for speech."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechContext:
    """Phrases that are likely in a call. They help to spell what was said; what was not said they do not add."""

    phrases: tuple[str, ...]
    """Words or short phrases, written as they shall appear."""
    boost: float | None = None
    """Up to 20: how much less likely than what was found (natural logarithm) a phrase may be and still be written.
    None: the server's default."""


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
    speech_contexts: tuple[SpeechContext, ...] = ()
    interim_results: bool = True
    speech_activity: bool = True
    """Send SpeechActivity events."""
    scene_events: bool = False
    """Send Scene events."""
    turn_events: bool = False
    """Send Turn events."""
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
