"""Steady tones on a line: where one begins and ends, and of which one or two frequencies it is.

Theory of operation. `prediction` says of every block whether its last 45 ms are one or two steady tones. Where they
are, a short spectrum makes sure that the energy lies in two narrow peaks above the pitch of voices, and gives their
centre of gravity. Blocks that follow each other with the same centre are one tone. After 100 ms a spectrum of all that
was heard of it, up to 150 ms, tells its frequencies to about 2 Hz.

A tone survives an interruption of some 80 ms if the line stays as loud: a phase reversal, a click, somebody's voice.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log10

import numpy as np
from numpy.typing import NDArray

from pipeline.scene.listening import BLOCK_MS, BLOCK_SAMPLES, HISTORY_SAMPLES, Block, BlockBuffer
from pipeline.scene.prediction import TonePredictor
from pipeline.types import CORE_SAMPLE_RATE_HZ, SAMPLES_PER_MS, Samples

_MAX_UNEXPLAINED_FIRST, _MAX_UNEXPLAINED_NEXT = 0.06, 0.12
"""Tones with noise 15 dB below them leave 0.05, some more; speech leaves less in one window of twenty."""
_MAX_UNEXPLAINED_GLANCE = 0.03
_MIN_SHARE = 0.9
_MIN_HZ = 330.0
"""Below are pitches of voices, and hum; above, all tones that networks send (350 Hz and higher)."""
_MAX_HZ = 3_400.0
_SHORT_FFT = 1_024
_LONG_FFT = 4_096
_HANN_HALF_LOBE = 2.0
"""Half the width of a peak under a Hann window, in bins of the unpadded window."""
_SAME_TONE_HZ = 30.0
_MAX_INTERRUPTION_BLOCKS = 4
_SAME_LEVEL = 10 ** (2.5 / 10)
"""From block to block. Two tones 40 Hz apart, which beat, stay within it."""
_GONE = 1 / 8
"""The line has fallen below this share of the tone's power: it is over, and not interrupted."""
_MIN_IDENTIFIED_MS = 100
_IDENTIFY_EVERY_BLOCKS, _IDENTIFY_LATER_EVERY_BLOCKS, _LATER_BLOCKS = 3, 25, 30
_REMEMBERED_BLOCKS, _REMEMBERED_INTERRUPTIONS = 64, 16
"""A dial tone may last for an hour."""
_SECOND_PEAK = 0.1
"""A second tone has at least this share of the first one's power."""
_BEGIN_LEAD_MS = 50
"""A window with less than a tenth of something else counts as tone; blocks are 20 ms apart."""
_END_LAG_MS = 10
_WINDOW_MS = 45
_WINDOW_SAMPLES = _WINDOW_MS * SAMPLES_PER_MS
_SPACINGS_SAMPLES = (94, 69)
_GLANCE_SAMPLES = 35 * SAMPLES_PER_MS
_GLANCE_SPACINGS_SAMPLES = (69, 45)
"""Spacings of the predictor at which the pairs that networks use do not fall together, and no pitch fits both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tone:
    """One steady tone, so far or as a whole, in milliseconds of the channel's audio."""

    begin_ms: int
    end_ms: int
    frequencies_hz: tuple[float, ...] = ()
    """One or two, lower first; empty while it is shorter than 100 ms."""
    level_dbfs: float = -100.0
    level_spread_db: float = 0.0
    """How far its level moved, edges left out."""
    interruptions_ms: tuple[int, ...] = ()
    """When it was interrupted, from its begin."""

    @property
    def duration_ms(self) -> int:
        """How long it is."""
        return self.end_ms - self.begin_ms


class _Run:
    """The tone under way."""

    def __init__(self, end_ms: int, centre_hz: float) -> None:
        self.begin_ms = max(0, end_ms - _BEGIN_LEAD_MS)
        self.end_ms = end_ms
        self.centre_hz = centre_hz
        self.frequencies_hz: tuple[float, ...] = ()
        self.powers: deque[float] = deque(maxlen=_REMEMBERED_BLOCKS)
        self.interruptions_ms: deque[int] = deque(maxlen=_REMEMBERED_INTERRUPTIONS)
        self.missed = 0
        self.other_blocks = 0
        self.num_blocks = 0

    @property
    def median_power(self) -> float:
        return sorted(self.powers)[len(self.powers) // 2]

    def as_tone(self) -> Tone:
        return Tone(
            begin_ms=self.begin_ms,
            end_ms=self.end_ms,
            frequencies_hz=self.frequencies_hz,
            level_dbfs=10 * log10(self.median_power / BLOCK_SAMPLES),
            level_spread_db=_spread_db(list(self.powers)),
            interruptions_ms=tuple(self.interruptions_ms),
        )


def _spread_db(powers: Sequence[float]) -> float:
    inner = powers[1:-1] if len(powers) > 3 else powers
    return 10 * log10(max(inner) / min(inner)) if inner else 0.0


class ToneTracker:
    """One channel's tones."""

    def __init__(self) -> None:
        self._glance = TonePredictor(_GLANCE_SAMPLES, _GLANCE_SPACINGS_SAMPLES)
        self._predictor = TonePredictor(_WINDOW_SAMPLES, _SPACINGS_SAMPLES)
        self._run: _Run | None = None
        self._last_energy = 0.0
        self._was_like_tones = False
        self.is_tonal = False
        """Whether the newest two blocks hold tones and nothing else."""

    @property
    def current(self) -> Tone | None:
        """The tone under way."""
        return None if self._run is None else self._run.as_tone()

    def glances(self, buffer: BlockBuffer) -> bool:
        """Whether the newest 30 ms look like tones: sooner than `is_tonal`, and less certain."""
        newest = buffer.newest(_GLANCE_SAMPLES)
        return _centre_hz(self._glance, newest, _MAX_UNEXPLAINED_GLANCE) is not None

    def advance(self, block: Block) -> list[Tone]:
        """Takes the next 20 ms; returns the tones that ended."""
        limit = _MAX_UNEXPLAINED_FIRST if self._run is None else _MAX_UNEXPLAINED_NEXT
        centre_hz = _centre_hz(self._predictor, block.heard[-_WINDOW_SAMPLES:], limit)
        is_like_tones = centre_hz is not None and self._is_as_loud(block)
        self.is_tonal = is_like_tones and self._was_like_tones
        self._was_like_tones = is_like_tones
        self._last_energy = block.energy
        if self._run is None:
            if centre_hz is not None:
                self._begin(block, centre_hz)
            return []
        if centre_hz is not None and abs(centre_hz - self._run.centre_hz) < _SAME_TONE_HZ:
            self._go_on(self._run, block, centre_hz)
            return []
        return self._miss(self._run, block, centre_hz)

    def _is_as_loud(self, block: Block) -> bool:
        """Whether the level is as before, as that of tones is; a voice that sounds like one for a moment moves it."""
        return self._last_energy / _SAME_LEVEL < block.energy < self._last_energy * _SAME_LEVEL

    def rest(self) -> list[Tone]:
        """Takes 20 ms in which nothing is to be heard."""
        self.is_tonal = self._was_like_tones = False
        return self.end()

    def end(self) -> list[Tone]:
        """The audio ends here, or is interrupted."""
        run, self._run = self._run, None
        return [] if run is None else [run.as_tone()]

    def _begin(self, block: Block, centre_hz: float) -> None:
        self._run = _Run(block.end_ms, centre_hz)
        self._run.powers.append(block.energy)

    def _go_on(self, run: _Run, block: Block, centre_hz: float) -> None:
        if run.missed:
            run.interruptions_ms.append(block.end_ms - _WINDOW_MS - (run.missed * BLOCK_MS) // 2 - run.begin_ms)
            run.missed = 0
        run.end_ms = block.end_ms
        run.centre_hz += 0.25 * (centre_hz - run.centre_hz)
        run.powers.append(block.energy)
        run.num_blocks += 1
        length_ms = run.end_ms - run.begin_ms
        every_blocks = _IDENTIFY_EVERY_BLOCKS if run.num_blocks < _LATER_BLOCKS else _IDENTIFY_LATER_EVERY_BLOCKS
        if length_ms >= _MIN_IDENTIFIED_MS and (not run.frequencies_hz or run.num_blocks % every_blocks == 0):
            inside = min(length_ms * SAMPLES_PER_MS, HISTORY_SAMPLES)
            window = block.heard[-inside:]
            run.frequencies_hz = _peaks(window - window.mean(), _LONG_FFT).frequencies_hz

    def _miss(self, run: _Run, block: Block, centre_hz: float | None) -> list[Tone]:
        """A block that does not go on with the tone under way."""
        run.missed += 1
        is_gone = block.energy < _GONE * run.median_power
        if not is_gone and run.missed <= _MAX_INTERRUPTION_BLOCKS and (centre_hz is None or run.missed < 2):
            return []
        ended = self.end()
        if centre_hz is not None:
            self._begin(block, centre_hz)
        return ended


def _centre_hz(predictor: TonePredictor, window: Samples, max_unexplained: float) -> float | None:
    """Centre of gravity of a window, if it is tones. A DC offset of the line does not count."""
    window = window - window.mean()
    if not predictor.explains(window, max_unexplained):
        return None
    peaks = _peaks(window, _SHORT_FFT)
    if peaks.share < _MIN_SHARE or not _MIN_HZ <= peaks.strongest_hz <= _MAX_HZ:
        return None
    return peaks.centre_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class _Peaks:
    strongest_hz: float
    centre_hz: float
    """Of both peaks, by power."""
    share: float
    """Of both in all energy."""
    frequencies_hz: tuple[float, ...]
    """Of the strongest, and of the second where it counts; lower first."""


@lru_cache(maxsize=16)
def _hann(num_samples: int) -> NDArray[np.float32]:
    return np.hanning(num_samples + 1)[:-1].astype(np.float32)


def _peaks(window: Samples, fft_samples: int) -> _Peaks:
    """The two strongest peaks of a window's spectrum."""
    spectrum = np.fft.rfft(window * _hann(len(window)), fft_samples)
    powers = np.square(spectrum.real) + np.square(spectrum.imag)
    bin_hz = CORE_SAMPLE_RATE_HZ / fft_samples
    lobe = int(np.ceil(_HANN_HALF_LOBE * fft_samples / len(window)))
    total = float(powers.sum())
    first = _take_peak(powers, lobe)
    second = _take_peak(powers, lobe)
    energy = first.energy + second.energy
    counts = (first, second) if second.power >= _SECOND_PEAK * first.power else (first,)
    return _Peaks(
        strongest_hz=first.position * bin_hz,
        centre_hz=(first.energy * first.position + second.energy * second.position) / energy * bin_hz,
        share=energy / total,
        frequencies_hz=tuple(sorted(peak.position * bin_hz for peak in counts)),
    )


@dataclass(frozen=True, slots=True)
class _Peak:
    position: float
    """In bins, between bins."""
    power: float
    energy: float


def _take_peak(powers: NDArray[np.float32], lobe: int) -> _Peak:
    """Finds the strongest peak and clears it away."""
    top = int(powers.argmax())
    low, high = max(0, top - lobe), top + lobe + 1
    power, energy = float(powers[top]), float(powers[low:high].sum())
    position = float(top)
    if 0 < top < len(powers) - 1 and power > 0:
        before, at, behind = np.log(powers[top - 1 : top + 2] + 1e-20).tolist()
        bend = before - 2 * at + behind
        position += 0.5 * (before - behind) / bend if bend else 0.0
    powers[low:high] = 0
    return _Peak(position, power, energy)
