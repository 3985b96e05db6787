"""Settings of a Whisper engine."""

from dataclasses import dataclass, field

from pipeline.engines.whisper.gates import GateThresholds
from pipeline.errors import InvalidConfigError

DEVICES = ("auto", "cpu", "cuda")
PRECISIONS = ("auto", "float32", "bfloat16", "float16", "int8")
_MAX_BEAMS = 16
_MAX_THREADS = 256
_MAX_LANES = 64
_MAX_HINT_BOOKS = 10_000
MAX_CPU_LANES = 8
"""With more cores, each lane has several."""
WHOLE_WINDOW_MS = 30_000
"""Padding with which nothing is left to remember: the stock window."""


def _require_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidConfigError(name, f"{value!r} is unknown; use one of {', '.join(choices)}")


def _require_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InvalidConfigError(name, f"{value} is outside {low} to {high}; use a value in that range")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperSettings:
    """How a Whisper engine is built and how it searches."""

    model: str = "tiny.en"
    """An embedded name ("tiny.en", "base"), a folder (transformers or CTranslate2) or a hub id."""
    device: str = "auto"
    """"cpu", "cuda" or "auto": CUDA where there is a device."""
    precision: str = "auto"
    """"float32", "bfloat16", "float16" (CUDA only), "int8" (x86 CPU only) or "auto": int8 on a CPU that has it, float16
    on CUDA."""
    beam_size: int = 1
    """Beams of a final; 1 is greedy. Interims are always greedy."""
    max_alternatives: int = 5
    """Most alternatives a final can have; more than one are found with as many beams."""
    timestamps: bool = False
    """Lets the model write segment times between the words; they are removed from the transcript."""
    interim_padding_ms: int = 500
    """Silence encoded behind the audio of an interim, before the remembered silence follows."""
    final_padding_ms: int = 2_000
    """The same for finals. 4 s halve their cost at the word error rate of the stock window (`WHOLE_WINDOW_MS`)."""
    look_ahead_ms: int = 1_000
    """Interims do not encode audio again that lies this far back. More is dearer and closer to the final; from
    `WHOLE_WINDOW_MS` on everything is encoded each time."""
    settle_text_ms: int = 3_000
    """Words that an utterance's interims have agreed on for so long are not decoded again by the next ones; from
    `WHOLE_WINDOW_MS` on all are. Less could make words count as stable that nothing has confirmed."""
    max_contexts: int = 64
    """Utterances under way of which encoded audio is kept, of all calls together."""
    max_hint_books: int = 64
    """Lists of speech contexts that are kept ready, of all calls together."""
    num_lanes: int | None = None
    """Batches at the same time; None: on a CPU one a core, at most `MAX_CPU_LANES`, on CUDA one."""
    num_threads: int | None = None
    """CPU threads of each lane, for the whole process; None: the cores divided by the lanes."""
    gates: GateThresholds = field(default_factory=GateThresholds)

    def __post_init__(self) -> None:
        """Checks the limits."""
        _require_choice("device", self.device, DEVICES)
        _require_choice("precision", self.precision, PRECISIONS)
        _require_range("beam_size", self.beam_size, 1, _MAX_BEAMS)
        _require_range("max_alternatives", self.max_alternatives, 1, _MAX_BEAMS)
        _require_range("max_hint_books", self.max_hint_books, 1, _MAX_HINT_BOOKS)
        _require_range("interim_padding_ms", self.interim_padding_ms, 0, WHOLE_WINDOW_MS)
        _require_range("final_padding_ms", self.final_padding_ms, 0, WHOLE_WINDOW_MS)
        _require_range("look_ahead_ms", self.look_ahead_ms, 500, WHOLE_WINDOW_MS)
        _require_range("settle_text_ms", self.settle_text_ms, 500, WHOLE_WINDOW_MS)
        _require_range("max_contexts", self.max_contexts, 1, 100_000)
        if self.num_lanes is not None:
            _require_range("num_lanes", self.num_lanes, 1, _MAX_LANES)
        if self.num_threads is not None:
            _require_range("num_threads", self.num_threads, 1, _MAX_THREADS)
