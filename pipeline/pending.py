"""A segment on the result side: what was asked for it, what was answered, what is shown of it."""

from dataclasses import dataclass, field

from pipeline.events import RecognitionResult, WithheldReason
from pipeline.language import SegmentLanguage
from pipeline.segmentation import OpenSegment
from pipeline.stabilization import Stabilizer
from pipeline.types import CORE_SAMPLE_RATE_HZ, SAMPLES_PER_MS, DecodeResult, SpeechSegment


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyWords:
    """What a party said up to a pause that may be the end."""

    segment_id: str
    transcript: str = field(repr=False)
    speech_end_sample: int
    """Call clock at 16 kHz."""


@dataclass(slots=True)
class EarlyFinal:
    """A final asked for before it was sure that speech had ended."""

    revision: int
    num_samples: int
    result: DecodeResult | None = None


class PendingSegment:
    """One segment from its first request to its final."""

    def __init__(self, heard: OpenSegment | SpeechSegment, stabilizer: Stabilizer, language: SegmentLanguage) -> None:
        self.segment_id = heard.segment_id
        self.start_sample = heard.start_sample
        self.speech_start_sample = heard.speech_start_sample
        self.stabilizer = stabilizer
        self.language = language
        self.language_is_settled = False
        self.revision = 0
        self.shown_revision = 0
        self.heard_samples: dict[int, tuple[int, int]] = {}
        """Revision to number of samples and end of speech."""
        self.draft: tuple[int, ...] = ()
        self.in_flight: str | None = None
        self.early: EarlyFinal | None = None
        self.closed: SpeechSegment | None = None
        self.final: DecodeResult | None = None
        self.waiting_interim: RecognitionResult | None = None
        self.withheld: WithheldReason | None = None

    @property
    def start_ms(self) -> int:
        """In the call clock."""
        return self.start_sample // SAMPLES_PER_MS

    @property
    def closed_segment(self) -> SpeechSegment:
        """All of it; only once it is closed."""
        if self.closed is None:
            raise RuntimeError("a final needs a closed segment")
        return self.closed


def speech_s(closed: SpeechSegment) -> float:
    """From where speech began to where it was last heard."""
    return max(0, closed.speech_end_sample - closed.speech_start_sample) / CORE_SAMPLE_RATE_HZ
