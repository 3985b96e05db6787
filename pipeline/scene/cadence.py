"""What the tones on a line mean: their frequencies and the rhythm in which they come and go.

Sources: ITU-T E.180 and E.180 Supplement 2 (tones of national networks), T.30 (fax), V.25 and V.8 (modems).

    kind                  tone                        told when
    RINGBACK              440+480, 400+450            0.3 s of it
                          400 to 450                  a ring of 0.67 to 2.4 s, or two short ones, are over
    BUSY                  480+620                     0.2 s of it
                          400 to 450                  the third of equal bursts with equal pauses is over
    DIAL_TONE             350+440                     0.5 s of it
                          400 to 450                  2.6 s of it
    SPECIAL_INFORMATION   950, 1400, 1800 in a row    it is over
    FAX                   1100 for half a second      the first is over
                          2100                        1 s of it
    MODEM                 2100, phase reversed        0.5 s of it
                          2100, level modulated       1 s of it
    BEEP                  any single one, even,       it has been over for 0.3 s (1 s where it may yet be busy)
                          0.1 to 2 s, on its own

What comes in a rhythm lasts until it stays away for longer than it has before.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.events import SceneKind
from pipeline.scene.signals import (
    alone_ms,
    are_busy,
    are_double_ring,
    are_special_information,
    is_answer,
    is_fax_call,
    is_ring,
    may_be_beep,
    meaning_so_far,
)
from pipeline.scene.tones import Tone

_MAX_PAUSE_MS = {SceneKind.RINGBACK: 6_500, SceneKind.BUSY: 1_200, SceneKind.FAX: 4_200}
"""Of what comes in a rhythm, before its own rhythm is known."""
_PAUSE_SLACK = 1.3
_MIN_LEARNT_PAUSE_MS = 1_000
"""A shorter one lies inside a double ring."""
_REMEMBERED_TONES = 4
_BETWEEN_DOUBLE_RINGS_MS = 1_000
_BUSY_BURSTS = _SPECIAL_TONES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ToneScene:
    """What tones mean, in milliseconds of the channel's audio."""

    kind: SceneKind
    begin_ms: int
    end_ms: int
    is_over: bool


class _Lasting:
    """A scene that was told and is not over."""

    def __init__(self, kind: SceneKind, begin_ms: int, end_ms: int) -> None:
        self.kind = kind
        self.begin_ms = begin_ms
        self.end_ms = end_ms
        self._longest_pause_ms = 0

    @property
    def patience_ms(self) -> int:
        """How long it may stay away."""
        limit_ms = _MAX_PAUSE_MS.get(self.kind, 0)
        if self._longest_pause_ms < _MIN_LEARNT_PAUSE_MS:
            return limit_ms
        return min(limit_ms, round(_PAUSE_SLACK * self._longest_pause_ms))

    def take(self, tone: Tone) -> None:
        if tone.begin_ms > self.end_ms:
            self._longest_pause_ms = max(self._longest_pause_ms, tone.begin_ms - self.end_ms)
        self.end_ms = max(self.end_ms, tone.end_ms)

    def told(self, *, is_over: bool) -> ToneScene:
        return ToneScene(kind=self.kind, begin_ms=self.begin_ms, end_ms=self.end_ms, is_over=is_over)


class CadenceClassifier:
    """One channel's tones in, what they mean out."""

    def __init__(self) -> None:
        self._lasting: _Lasting | None = None
        self._tones: deque[Tone] = deque(maxlen=_REMEMBERED_TONES)
        """The newest that are over."""
        self._beep: Tone | None = None
        """May be one, if nothing follows."""

    @property
    def is_idle(self) -> bool:
        """Whether time alone changes nothing."""
        return self._lasting is None and self._beep is None and not self._tones

    def advance(self, now_ms: int, ended: Sequence[Tone], current: Tone | None) -> list[ToneScene]:
        """Takes the tones that ended in the newest 20 ms and the one that goes on."""
        scenes = [scene for tone in ended for scene in self._take(tone)]
        if current is not None:
            scenes += self._take_unfinished(current)
        return scenes + self._wait(now_ms, current)

    def end(self, ended: Sequence[Tone]) -> list[ToneScene]:
        """The audio ends here, or is interrupted."""
        scenes = [scene for tone in ended for scene in self._take(tone)]
        scenes += self._beep_alone() + self._close()
        self._tones.clear()
        return scenes

    def _take_unfinished(self, tone: Tone) -> list[ToneScene]:
        self._beep = None
        kind = meaning_so_far(tone)
        return [] if kind is None else self._tell(kind, tone.begin_ms, tone)

    def _take(self, tone: Tone) -> list[ToneScene]:
        """A tone that is over."""
        scenes = self._take_unfinished(tone)
        follows = bool(self._tones) and tone.begin_ms - self._tones[-1].end_ms < alone_ms(tone)
        self._tones.append(tone)
        if self._lasting is not None and self._lasting.end_ms == tone.end_ms:
            return scenes if self._lasting.kind in _MAX_PAUSE_MS and not is_answer(tone) else scenes + self._close()
        newest = list(self._tones)[-_SPECIAL_TONES:]
        if are_special_information(newest):
            first = newest[0]
            scenes += self._close()
            return [*scenes, _over(SceneKind.SPECIAL_INFORMATION, first.begin_ms, tone.end_ms)]
        rhythm = self._rhythm(tone)
        if rhythm is not None:
            return scenes + self._tell(*rhythm, tone)
        if not follows and may_be_beep(tone):
            self._beep = tone
        return scenes

    def _rhythm(self, tone: Tone) -> tuple[SceneKind, int] | None:
        """Kind and begin of what comes in a rhythm of single tones."""
        if is_fax_call(tone):
            return SceneKind.FAX, tone.begin_ms
        if is_ring(tone):
            return SceneKind.RINGBACK, tone.begin_ms
        bursts = list(self._tones)[-_BUSY_BURSTS:]
        if len(bursts) == _BUSY_BURSTS and are_busy(bursts):
            return SceneKind.BUSY, bursts[0].begin_ms
        return None

    def _tell(self, kind: SceneKind, begin_ms: int, tone: Tone) -> list[ToneScene]:
        """What is heard goes on, or begins."""
        self._beep = None
        if self._lasting is not None and self._lasting.kind is kind:
            self._lasting.take(tone)
            return []
        scenes = self._close()
        self._lasting = _Lasting(kind, begin_ms, tone.end_ms)
        return [*scenes, self._lasting.told(is_over=False)]

    def _close(self) -> list[ToneScene]:
        lasting, self._lasting = self._lasting, None
        return [] if lasting is None else [lasting.told(is_over=True)]

    def _wait(self, now_ms: int, current: Tone | None) -> list[ToneScene]:
        """Time passes."""
        scenes: list[ToneScene] = []
        if current is None and self._tones:
            quiet_ms = now_ms - self._tones[-1].end_ms
            if self._beep is not None and quiet_ms >= alone_ms(self._beep):
                scenes += self._beep_alone()
            if quiet_ms >= _BETWEEN_DOUBLE_RINGS_MS and are_double_ring(list(self._tones)[-2:]):
                scenes += self._tell(SceneKind.RINGBACK, self._tones[-2].begin_ms, self._tones[-1])
            if quiet_ms > max(_MAX_PAUSE_MS.values()):
                self._tones.clear()
        lasting = self._lasting
        if lasting is not None and current is None and now_ms - lasting.end_ms > lasting.patience_ms:
            scenes += self._close()
            self._tones.clear()
        return scenes

    def _beep_alone(self) -> list[ToneScene]:
        beep, self._beep = self._beep, None
        return [] if beep is None else [_over(SceneKind.BEEP, beep.begin_ms, beep.end_ms)]


def _over(kind: SceneKind, begin_ms: int, end_ms: int) -> ToneScene:
    return ToneScene(kind=kind, begin_ms=begin_ms, end_ms=end_ms, is_over=True)
