"""Settings of one call, validated where they are made. Durations are milliseconds of audio."""

from dataclasses import dataclass, field, replace
from enum import Enum

from pipeline.errors import InvalidConfigError
from pipeline.types import FRAME_MS, AudioFormat, DecodeHints, SpeechContext

SUPPORTED_SAMPLE_RATES_HZ = (8_000, 16_000, 24_000, 32_000, 44_100, 48_000)
MAX_CHANNELS = 2
MAX_DOUBT_MS = 100
"""The beginning of speech is held back for so long at most while it may be a tone."""


class DenoisingMode(Enum):
    """What RNNoise is used for."""

    OFF = "off"
    VAD_ONLY = "vad_only"
    """Voice activity is measured on denoised audio; the engine hears the original."""
    MIX = "mix"
    """The engine hears a mix of denoised and original audio."""


class VadMode(Enum):
    """Which detectors measure voice activity."""

    COMBINED = "combined"
    WEBRTC = "webrtc"
    SILERO = "silero"
    ENERGY = "energy"
    """No model: level against the noise floor. For tests and clean lines."""


def _require_range(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InvalidConfigError(name, f"{value} is outside {low} to {high}; use a value in that range")


class EndpointingProfile(Enum):
    """What kind of speech is expected; `pipeline.profiles` says what that means."""

    CONVERSATION = "conversation"
    """People who talk to each other."""
    SHORT_ANSWER = "short_answer"
    """Answers to a voice menu."""
    DICTATION = "dictation"
    """Long sentences with pauses to think."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointingConfig:
    """When speech counts as begun and as ended. The defaults are those of CONVERSATION."""

    profile: EndpointingProfile = EndpointingProfile.CONVERSATION
    """Where the durations come from that were not given; changes nothing by itself."""
    onset_ms: int = 60
    """Speech of at least this long begins an utterance."""
    hangover_ms: int = 500
    """Silence of this long ends it."""
    number_hangover_ms: int = 1_500
    """Pause within a number, such as a card's, that does not end it (`pipeline.joining`). No longer than `hangover_ms`:
    every pause does."""
    pre_roll_ms: int = 300
    """Audio kept from before the onset; VADs fire late."""
    post_roll_ms: int = 300
    """Silence kept behind the last voiced frame. When it is heard, the final is decoded before the hangover ends."""
    max_segment_ms: int = 25_000
    """A longer segment is cut. Below Whisper's window of 30 s."""
    cut_search_ms: int = 2_000
    """The cut is made at the lowest energy within this last part of a too long segment."""
    sensitivity: float = 0.5
    """0 to 1; higher takes quieter or less certain sounds for speech."""

    def __post_init__(self) -> None:
        """Checks the limits."""
        _require_range("endpointing.onset_ms", self.onset_ms, FRAME_MS, 1_000)
        _require_range("endpointing.hangover_ms", self.hangover_ms, 100, 5_000)
        _require_range("endpointing.number_hangover_ms", self.number_hangover_ms, 100, 5_000)
        _require_range("endpointing.pre_roll_ms", self.pre_roll_ms, 200, 500)
        _require_range("endpointing.post_roll_ms", self.post_roll_ms, 100, 1_000)
        _require_range("endpointing.max_segment_ms", self.max_segment_ms, 5_000, 28_000)
        _require_range("endpointing.cut_search_ms", self.cut_search_ms, 500, 4_000)
        _require_range("endpointing.sensitivity", self.sensitivity, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimConfig:
    """When interims are asked for and which of their words count as stable."""

    enabled: bool = True
    first_after_ms: int = 300
    """Speech heard before the first interim of a segment is asked for."""
    interval_ms: int = 500
    """Audio between two interims of a segment."""
    stable_after_ms: int = 3_000
    """Words that all hypotheses agreed on for this long count as stable."""

    def __post_init__(self) -> None:
        """Checks the limits."""
        _require_range("interim.first_after_ms", self.first_after_ms, 100, 5_000)
        _require_range("interim.interval_ms", self.interval_ms, 100, 10_000)
        _require_range("interim.stable_after_ms", self.stable_after_ms, 500, 30_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class HintsUpdate:
    """What a caller changes in the middle of a call; None leaves as it was."""

    language_code: str | None = None
    speech_contexts: tuple[SpeechContext, ...] | None = None

    def apply(self, hints: DecodeHints) -> DecodeHints:
        """The hints for what is said from here on."""
        if self.language_code is not None:
            hints = replace(hints, language_code=self.language_code)
        return hints if self.speech_contexts is None else replace(hints, speech_contexts=self.speech_contexts)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConfig:
    """Everything a recognition session needs to know."""

    audio_format: AudioFormat
    hints: DecodeHints = field(default_factory=DecodeHints)
    endpointing: EndpointingConfig = field(default_factory=EndpointingConfig)
    interim: InterimConfig = field(default_factory=InterimConfig)
    denoising: DenoisingMode = DenoisingMode.VAD_ONLY
    vad: VadMode = VadMode.COMBINED
    speech_activity_events: bool = False
    scene_events: bool = False
    turn_events: bool = False
    silence_after_ms: int = 10_000
    """Nobody has spoken for this long: long enough to be told as a scene event."""
    start_offset_ms: int = 0
    """Where in the call the first audio lies; more than 0 when a call is resumed."""

    def __post_init__(self) -> None:
        """Checks the limits."""
        rate = self.audio_format.sample_rate_hz
        if rate not in SUPPORTED_SAMPLE_RATES_HZ:
            rates = ", ".join(str(r) for r in SUPPORTED_SAMPLE_RATES_HZ)
            raise InvalidConfigError("sample_rate_hertz", f"{rate} is not supported; use one of {rates}")
        channels = self.audio_format.num_channels
        if not 1 <= channels <= MAX_CHANNELS:
            raise InvalidConfigError(
                "audio_channel_count", f"{channels} is outside 1 to {MAX_CHANNELS}; send each party as a channel"
            )
        _require_range("silence_after_ms", self.silence_after_ms, 1_000, 3_600_000)
        if self.start_offset_ms < 0:
            raise InvalidConfigError(
                "call.resume.audio_offset_ms", f"{self.start_offset_ms} is negative; use 0 or more"
            )
