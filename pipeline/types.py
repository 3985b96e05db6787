"""The values that flow between rooms: frozen, slotted, with units in their names.

`repr` never shows samples or transcripts: what people say in calls is personal data and must not reach a log.
"""

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
"""Mono audio, shape `(num_samples,)`, values in [-1, 1)."""

CORE_SAMPLE_RATE_HZ = 16_000
"""Everything behind the resampler runs at this rate (Whisper's and Silero's)."""
FRAME_MS = 10
"""The quantum of the core: legal for WebRTC's VAD, exact for RNNoise, whole at every accepted rate."""
FRAME_SAMPLES = CORE_SAMPLE_RATE_HZ * FRAME_MS // 1000
SAMPLES_PER_MS = CORE_SAMPLE_RATE_HZ // 1000


AUTO_LANGUAGE = "auto"
"""Instead of a language code: detect it."""
LanguageProbability = tuple[str, float]
"""A language code and how likely it is, 0 to 1."""


class AudioEncoding(Enum):
    """How samples lie in bytes."""

    LINEAR16 = "LINEAR16"
    """Signed 16-bit little-endian PCM."""
    MULAW = "MULAW"
    """ITU-T G.711 mu-law."""
    ALAW = "ALAW"
    """ITU-T G.711 A-law."""


class Task(Enum):
    """What a model does with the words it hears."""

    TRANSCRIBE = "transcribe"
    TRANSLATE = "translate"


class EndReason(Enum):
    """Why a segment ended."""

    SILENCE = "SILENCE"
    MAX_LENGTH = "MAX_LENGTH"
    FLUSH = "FLUSH"
    END_OF_STREAM = "END_OF_STREAM"


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFormat:
    """What arrives from the caller."""

    encoding: AudioEncoding
    sample_rate_hz: int
    num_channels: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechSegment:
    """A closed stretch of speech, pre-roll and hangover included."""

    segment_id: str
    """Unique in the call; becomes the `result_id`."""
    channel_tag: int
    start_sample: int
    """Call clock at 16 kHz."""
    speech_start_sample: int
    """Where speech began behind the pre-roll, call clock at 16 kHz; the start itself where an utterance was cut."""
    speech_end_sample: int
    """Where speech was last heard, call clock at 16 kHz."""
    samples: Samples = field(repr=False, compare=False)
    end_reason: EndReason
    speech_score: float = 0.0
    """Mean score of the voiced frames, 0 to 1."""

    @property
    def end_sample(self) -> int:
        """First sample behind the segment, call clock at 16 kHz."""
        return self.start_sample + len(self.samples)


MAX_BOOST = 20.0
DEFAULT_BOOST = 14.0
"""What names that a model does not know need at most, and other words do not reach (measured, both embedded models)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechContext:
    """Phrases that are likely in a call."""

    phrases: tuple[str, ...] = field(repr=False)
    """Words or short phrases, written as they shall appear."""
    boost: float
    """How much less likely than what was found (natural logarithm) a phrase may be and still be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeHints:
    """How a call wants its audio decoded."""

    language_code: str = "en"
    """ISO 639-1 code ("en"), or "auto" to detect it in each segment."""
    allowed_language_codes: tuple[str, ...] = ()
    """With "auto": the languages to choose from; empty means all that the model knows."""
    detects_language: bool = False
    """The answer says how likely each language is, also where `language_code` says which one to decode in."""
    task: Task = Task.TRANSCRIBE
    word_details: bool = False
    """Finals carry words with times and confidences."""
    num_alternatives: int = 1
    """Ranked alternatives wanted in finals."""
    speech_contexts: tuple[SpeechContext, ...] = ()
    """What is likely to be said; engines that cannot use it ignore it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeRequest:
    """Audio of one segment to be turned into words."""

    request_id: str
    session_id: str
    segment_id: str
    channel_tag: int
    revision: int
    """Counts the requests of a segment from 1."""
    audio: Samples = field(repr=False, compare=False)
    """The whole segment so far, 16 kHz. Read only: it may be a view of a buffer that still grows behind it."""
    is_final: bool
    hints: DecodeHints
    draft: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """Token ids of the newest hypothesis of this segment, for engines that verify instead of decode."""
    speech_score: float | None = None
    """How sure voice activity detection was of the frames it took for speech, 0 to 1; None: nobody asked it."""

    @property
    def segment_key(self) -> tuple[str, str]:
        """Names the segment across calls; what an engine caches under."""
        return (self.session_id, self.segment_id)

    @property
    def channel_key(self) -> tuple[str, int]:
        """Names the channel across calls."""
        return (self.session_id, self.channel_tag)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelDecode:
    """The answer to this request is no longer wanted; a late one is still accepted."""

    request_id: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Requests that go through the engine together."""

    requests: tuple[DecodeRequest, ...]
    padded_audio_s: float
    """Longest request times number of requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word; times count from the first sample of the request's audio."""

    text: str = field(repr=False)
    start_ms: int
    end_ms: int
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """One reading of a request's audio."""

    transcript: str = field(repr=False)
    words: tuple[Word, ...] = field(default=(), repr=False)
    """Filled for finals when the request's hints ask for it."""
    confidence: float
    """0 to 1."""
    language_code: str
    tokens: tuple[int, ...] = field(default=(), repr=False)
    """Text token ids; the draft of the segment's next request."""
    formatted_transcript: str = field(default="", repr=False)
    """`transcript` with its numbers in digits; filled for finals."""
    certainties: tuple[float, ...] = field(default=(), repr=False)
    """One a word of `transcript.split()`: the lowest probability of its tokens, 0 to 1. Empty where
    words are not apart from each other by spaces."""


class DropReason(Enum):
    """Why a final has no words."""

    TOO_QUIET = "TOO_QUIET"
    NO_SPEECH = "NO_SPEECH"
    """The model hears nobody, and voice activity was not sure."""
    UNLIKELY = "UNLIKELY"
    """No attempt gave a text that is believable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeResult:
    """The answer to one request: alternatives, best first (none: no words), or an error."""

    request_id: str
    alternatives: tuple[Hypothesis, ...] = ()
    language_probabilities: tuple[LanguageProbability, ...] = ()
    """On demand: the likeliest languages of the audio, likeliest first."""
    error: str | None = None
    """For people; never holds words of the call."""
    dropped: DropReason | None = None
    """Set in answers to finals without words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """What one batch cost, for telemetry."""

    model: str
    num_requests: int
    num_finals: int
    audio_s: float
    compute_s: float
    queue_wait_s: tuple[float, ...]
    """Submitted to taken, one a request."""
    num_failed: int = 0
