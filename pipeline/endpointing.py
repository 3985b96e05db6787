"""Decides when speech begins and ends, from one speech score per 10 ms frame.

Theory of operation. A state machine over frames, driven by whether a frame is voiced:

    state      voiced                                 not voiced
    SILENCE    ONSET                                  SILENCE
    ONSET      SPEECH after onset_ms, else ONSET      SILENCE
    SPEECH     SPEECH                                 HANGOVER
    HANGOVER   SPEECH                                 SILENCE after hangover_ms, else HANGOVER

Rules:
1. All transitions are in `_NEXT`; nothing else changes the state, except `flush` and `withdraw`.
2. Voiced has hysteresis: it takes a higher score to start speech than to go on with it.
3. What may yet turn out to be a tone begins no speech while it is in doubt, and loses nothing by it: speech then began
   where it was first voiced.
4. Times are frame numbers; what happens to the audio is `segmentation`'s business.
"""

from dataclasses import dataclass
from enum import Enum, auto

from pipeline.config import MAX_DOUBT_MS, EndpointingConfig
from pipeline.types import FRAME_MS

_HYSTERESIS = 0.15
_THRESHOLD_AT_MIN_SENSITIVITY = 0.8
_THRESHOLD_AT_MAX_SENSITIVITY = 0.2


class EndpointState(Enum):
    """Where a channel is between silence and speech."""

    SILENCE = auto()
    ONSET = auto()
    SPEECH = auto()
    HANGOVER = auto()


class _Input(Enum):
    VOICED = auto()
    VOICED_LONG = auto()
    UNVOICED = auto()
    UNVOICED_LONG = auto()


_S, _I = EndpointState, _Input
_NEXT = {
    (_S.SILENCE, _I.VOICED): _S.ONSET,
    (_S.SILENCE, _I.VOICED_LONG): _S.SPEECH,
    (_S.SILENCE, _I.UNVOICED): _S.SILENCE,
    (_S.SILENCE, _I.UNVOICED_LONG): _S.SILENCE,
    (_S.ONSET, _I.VOICED): _S.ONSET,
    (_S.ONSET, _I.VOICED_LONG): _S.SPEECH,
    (_S.ONSET, _I.UNVOICED): _S.SILENCE,
    (_S.ONSET, _I.UNVOICED_LONG): _S.SILENCE,
    (_S.SPEECH, _I.VOICED): _S.SPEECH,
    (_S.SPEECH, _I.VOICED_LONG): _S.SPEECH,
    (_S.SPEECH, _I.UNVOICED): _S.HANGOVER,
    (_S.SPEECH, _I.UNVOICED_LONG): _S.SILENCE,
    (_S.HANGOVER, _I.VOICED): _S.SPEECH,
    (_S.HANGOVER, _I.VOICED_LONG): _S.SPEECH,
    (_S.HANGOVER, _I.UNVOICED): _S.HANGOVER,
    (_S.HANGOVER, _I.UNVOICED_LONG): _S.SILENCE,
}
_SPEAKING = (EndpointState.SPEECH, EndpointState.HANGOVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechBegan:
    """Speech began with this frame (which lies `onset_ms` back)."""

    frame: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechEnded:
    """The last voiced frame was the one before this."""

    frame: int


class Endpointer:
    """One channel's state machine."""

    def __init__(self, config: EndpointingConfig) -> None:
        span = _THRESHOLD_AT_MIN_SENSITIVITY - _THRESHOLD_AT_MAX_SENSITIVITY
        self._enter_score = _THRESHOLD_AT_MIN_SENSITIVITY - span * config.sensitivity
        self._stay_score = max(0.05, self._enter_score - _HYSTERESIS)
        self._onset_frames = config.onset_ms // FRAME_MS
        self._hangover_frames = config.hangover_ms // FRAME_MS
        self.state = EndpointState.SILENCE
        self._frame = 0
        self._first_voiced_frame = 0
        self._voiced_end_frame = 0

    @property
    def least_score(self) -> float:
        """The lowest score that can count as voiced."""
        return self._stay_score

    @property
    def is_speaking(self) -> bool:
        """Whether an utterance is open."""
        return self.state in _SPEAKING

    @property
    def speech_end_frame(self) -> int:
        """One past the newest voiced frame."""
        return self._voiced_end_frame

    @property
    def silent_frames(self) -> int:
        """Frames since the newest voiced one."""
        return self._frame - self._voiced_end_frame

    def advance(self, score: float, *, is_doubtful: bool = False) -> SpeechBegan | SpeechEnded | None:
        """Takes the score of the next frame, and whether it may not be speech whatever its score."""
        before = self.state
        self.state = _NEXT[before, self._classify(score, is_doubtful)]
        self._frame += 1
        if self.is_speaking and before not in _SPEAKING:
            return SpeechBegan(frame=self._first_voiced_frame)
        if not self.is_speaking and before in _SPEAKING:
            return SpeechEnded(frame=self._voiced_end_frame)
        return None

    def withdraw(self) -> None:
        """What seemed to begin is no speech."""
        if self.state is EndpointState.ONSET:
            self.state = EndpointState.SILENCE

    def flush(self) -> SpeechBegan | None:
        """The stream ends here: an onset still under way counts as speech."""
        if self.state is EndpointState.ONSET:
            self.state = EndpointState.SPEECH
            return SpeechBegan(frame=self._first_voiced_frame)
        return None

    def end(self) -> SpeechEnded | None:
        """Ends an open utterance now."""
        was_speaking = self.is_speaking
        self.state = EndpointState.SILENCE
        return SpeechEnded(frame=self._voiced_end_frame) if was_speaking else None

    def skip(self, num_frames: int) -> None:
        """Time passes without audio. The caller has let the hangover run out before."""
        self._frame += num_frames

    @property
    def _onset_length(self) -> int:
        return self._voiced_end_frame - self._first_voiced_frame

    @property
    def _is_onset_long(self) -> bool:
        return self._onset_length >= self._onset_frames

    def _classify(self, score: float, is_doubtful: bool) -> _Input:
        if score >= (self._stay_score if self.is_speaking else self._enter_score):
            if self.state is EndpointState.SILENCE:
                self._first_voiced_frame = self._frame
            self._voiced_end_frame = self._frame + 1
            is_doubtful = is_doubtful and self._onset_length < self._onset_frames + MAX_DOUBT_MS // FRAME_MS
            return _Input.VOICED_LONG if self._is_onset_long and not is_doubtful else _Input.VOICED
        if self.state is EndpointState.ONSET and self._is_onset_long:
            return _Input.VOICED_LONG  # it was in doubt until now
        unvoiced_frames = self._frame + 1 - self._voiced_end_frame
        return _Input.UNVOICED_LONG if unvoiced_frames >= self._hangover_frames else _Input.UNVOICED
