"""What single tones and bursts of them are, by frequency, length and evenness.

Sources as in `cadence`, which puts these together in time. A frequency of a single-tone network is called progress: the
same 400 to 450 Hz ring, are busy or invite to dial, and only their rhythm tells.
"""

from collections.abc import Sequence

from pipeline.events import SceneKind
from pipeline.scene.tones import Tone

_PAIRS: tuple[tuple[SceneKind, tuple[int, int], int], ...] = (
    (SceneKind.RINGBACK, (440, 480), 300),
    (SceneKind.RINGBACK, (400, 450), 300),
    (SceneKind.BUSY, (480, 620), 200),
    (SceneKind.DIAL_TONE, (350, 440), 500),
    (SceneKind.DIAL_TONE, (350, 450), 500),
)
"""Kind, frequencies in Hz, and the length in ms after which it is certain."""
_PAIR_TOLERANCE_HZ = 8.0

_PROGRESS_HZ = (385.0, 465.0)
"""Where networks that signal with a single tone have it: 400 to 450 Hz, some percent off."""
_DIAL_MIN_MS = 2_600
_RING_MS = (670, 2_400)
_BUSY_BURST_MS = (100, 700)
_BUSY_EVENNESS = 0.2
_BUSY_MIN_SLACK_MS = 40
_BUSY_RATIO = 2.0
"""Bursts and pauses differ by no more than this factor."""
_SHORT_RING_MS, _SHORT_RING_GAP_MS = (300, 500), (140, 300)

_SPECIAL_HZ = (950.0, 1400.0, 1800.0)
_SPECIAL_TOLERANCE_HZ = 50.0
_SPECIAL_MS = (200, 480)
_SPECIAL_MAX_GAP_MS = 120

_FAX_CALLS_HZ, _FAX_CALLS_TOLERANCE_HZ, _FAX_CALLS_MS = 1100.0, 38.0, (400, 620)
_ANSWER_HZ, _ANSWER_TOLERANCE_HZ = 2100.0, 20.0
_FAX_ANSWERS_MIN_MS = 1_000
_REVERSAL_MS = (380, 520)
"""V.25: every 450 ms, some of which blocks and interruptions blur."""

_MODULATED_DB = 2.0
"""V.8: the level of some modems' tone moves by a fifth up and down, 15 times a second."""

_BEEP_HZ = (400.0, 2_500.0)
_BEEP_MS = (80, 2_050)
_LOW_BEEP_HZ, _LOW_BEEP_MIN_MS = 480.0, 200
"""Below, voices hold a tone for some 150 ms."""
_BEEP_MAX_SPREAD_DB = 1.5
_BEEP_MIN_DBFS = -42.0
"""Beeps are meant to be heard; whistling breath is fainter."""
_ALONE_MS, _ALONE_PROGRESS_MS = 300, 1_000


def meaning_so_far(tone: Tone) -> SceneKind | None:
    """What a tone surely is, whatever follows."""
    if len(tone.frequencies_hz) == 2:
        for kind, pair, least_ms in _PAIRS:
            near = all(abs(a - b) <= _PAIR_TOLERANCE_HZ for a, b in zip(tone.frequencies_hz, pair, strict=True))
            if near and tone.duration_ms >= least_ms:
                return kind
        return None
    if is_progress(tone):
        return SceneKind.DIAL_TONE if tone.duration_ms >= _DIAL_MIN_MS else None
    if is_answer(tone):
        if _is_reversed(tone):
            return SceneKind.MODEM
        if tone.duration_ms < _FAX_ANSWERS_MIN_MS:
            return None
        return SceneKind.FAX if tone.level_spread_db < _MODULATED_DB else SceneKind.MODEM
    return None


def _is_single(tone: Tone, hz: float, tolerance_hz: float) -> bool:
    return len(tone.frequencies_hz) == 1 and abs(tone.frequencies_hz[0] - hz) <= tolerance_hz


def is_progress(tone: Tone) -> bool:
    """A tone of a network that signals with a single one."""
    return len(tone.frequencies_hz) == 1 and _PROGRESS_HZ[0] <= tone.frequencies_hz[0] <= _PROGRESS_HZ[1]


def is_answer(tone: Tone) -> bool:
    """What faxes and modems answer with."""
    return _is_single(tone, _ANSWER_HZ, _ANSWER_TOLERANCE_HZ)


def _is_reversed(tone: Tone) -> bool:
    marks = (0, *tone.interruptions_ms)
    return any(_REVERSAL_MS[0] <= b - a <= _REVERSAL_MS[1] for a, b in zip(marks, marks[1:], strict=False))


def _lasts(tone: Tone, bounds_ms: tuple[int, int]) -> bool:
    return bounds_ms[0] <= tone.duration_ms <= bounds_ms[1]


def is_even(tone: Tone) -> bool:
    """Whether its level does not move."""
    return not tone.interruptions_ms and tone.level_spread_db <= _BEEP_MAX_SPREAD_DB


def may_be_beep(tone: Tone) -> bool:
    """Whether it is a beep if it is alone."""
    is_heard = tone.level_dbfs >= _BEEP_MIN_DBFS and is_even(tone)
    if len(tone.frequencies_hz) != 1 or not is_heard or not _lasts(tone, _BEEP_MS):
        return False
    hz = tone.frequencies_hz[0]
    is_long = hz >= _LOW_BEEP_HZ or tone.duration_ms >= _LOW_BEEP_MIN_MS
    return is_long and _BEEP_HZ[0] <= hz <= _BEEP_HZ[1]


def alone_ms(tone: Tone) -> int:
    """How long nothing may come before and after a beep."""
    return _ALONE_PROGRESS_MS if is_progress(tone) else _ALONE_MS


def are_busy(bursts: Sequence[Tone]) -> bool:
    """Whether bursts and the pauses between them are equal."""
    if not all(is_progress(burst) and _lasts(burst, _BUSY_BURST_MS) for burst in bursts):
        return False
    on_ms = [burst.duration_ms for burst in bursts]
    off_ms = [later.begin_ms - earlier.end_ms for earlier, later in zip(bursts, bursts[1:], strict=False)]
    mean_on, mean_off = sum(on_ms) / len(on_ms), sum(off_ms) / len(off_ms)
    are_alike = mean_on <= _BUSY_RATIO * mean_off and mean_off <= _BUSY_RATIO * mean_on
    return are_alike and _are_equal(on_ms) and _are_equal(off_ms)


def _are_equal(durations_ms: Sequence[int]) -> bool:
    slack_ms = max(_BUSY_MIN_SLACK_MS, _BUSY_EVENNESS * sum(durations_ms) / len(durations_ms))
    return max(durations_ms) - min(durations_ms) <= slack_ms


def is_fax_call(tone: Tone) -> bool:
    """CNG: half a second of 1100 Hz."""
    return _is_single(tone, _FAX_CALLS_HZ, _FAX_CALLS_TOLERANCE_HZ) and _lasts(tone, _FAX_CALLS_MS)


def is_ring(tone: Tone) -> bool:
    """A ring of a single-tone network."""
    return is_progress(tone) and is_even(tone) and _lasts(tone, _RING_MS)


def are_special_information(tones: Sequence[Tone]) -> bool:
    """Whether these are its three tones."""
    gaps = [later.begin_ms - earlier.end_ms for earlier, later in zip(tones, tones[1:], strict=False)]
    return (
        len(tones) == len(_SPECIAL_HZ)
        and all(
            _is_single(tone, hz, _SPECIAL_TOLERANCE_HZ) and _lasts(tone, _SPECIAL_MS)
            for tone, hz in zip(tones, _SPECIAL_HZ, strict=True)
        )
        and max(gaps) <= _SPECIAL_MAX_GAP_MS
    )


def are_double_ring(tones: Sequence[Tone]) -> bool:
    """Whether these are two short rings that belong together."""
    if len(tones) != 2 or not all(is_progress(ring) and _lasts(ring, _SHORT_RING_MS) for ring in tones):
        return False
    gap_ms = tones[1].begin_ms - tones[0].end_ms
    return _SHORT_RING_GAP_MS[0] <= gap_ms <= _SHORT_RING_GAP_MS[1]
