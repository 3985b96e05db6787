"""What happens on one channel besides speech: audio in, scene events out, and what must not count as speech.

Theory of operation. Frames gather to blocks of 20 ms; a block that can be heard goes through the detectors, one that
cannot only lets time pass. What the detectors find becomes events in the call clock. What lasts is told when it is
recognised and when it is over; keys, beeps and special information tones are only known when they are over, and told
once, with their length.

The front end asks two things more: whether what it hears now are tones alone, which are no speech whatever a voice
activity detector thinks of them; and which keys have just been released, to take them out of what is recognised.

Music is listened for frame by frame; it hides no speech, since people talk over it. Tones are not told as music.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from pipeline.config import SessionConfig
from pipeline.events import SceneEvent, SceneKind
from pipeline.scene.cadence import CadenceClassifier, ToneScene
from pipeline.scene.dtmf import DtmfDetector
from pipeline.scene.keys import KeyLedger, KeySource
from pipeline.scene.lasting import Lasting
from pipeline.scene.listening import BLOCK_SAMPLES, Block, BlockBuffer
from pipeline.scene.music_watch import MusicWatch
from pipeline.scene.presses import KeyPress
from pipeline.scene.silence import SilenceWatch
from pipeline.scene.tones import ToneTracker
from pipeline.types import FRAME_SAMPLES, Samples

_AUDIBLE_RMS = 1.8e-3
"""-55 dBFS. The quietest keys that have to be heard (Q.24) are at -42 dBFS."""
_AUDIBLE_ENERGY = BLOCK_SAMPLES * _AUDIBLE_RMS**2

_NOTHING = np.zeros(FRAME_SAMPLES, dtype=np.float32)

_ECHO_MS, _ECHO_SHARE = 120, 1 / 4
"""Detectors of voice activity hold on to a tone for that long after it; a voice is louder."""


class SceneTrack:
    """One channel's scene."""

    def __init__(self, channel_tag: int, config: SessionConfig) -> None:
        self._channel_tag = channel_tag
        self._start_ms = config.start_offset_ms
        self._buffer = BlockBuffer()
        self._dtmf = DtmfDetector()
        self._tones = ToneTracker()
        self._cadence = CadenceClassifier()
        self._silence = SilenceWatch(config.silence_after_ms)
        self._music = MusicWatch()
        self._keys = KeyLedger()
        self._is_speaking = False
        self._hides_speech = False
        self._tonal_ms = 0
        """When the newest tones were heard, and how loud they were."""
        self._tonal_energy = 0.0
        self.released_keys: list[KeyPress] = []
        """In the newest frame; times in milliseconds of the channel's audio."""

    @property
    def hides_speech(self) -> bool:
        """Whether what was heard last were tones and nothing else, or the quiet just behind them."""
        return self._hides_speech

    def may_be_tones(self) -> bool:
        """Whether the newest 30 ms alone look like it; sooner than `hides_speech`, and less certain."""
        return self._tones.glances(self._buffer)

    def advance(self, frame: Samples) -> Iterable[SceneEvent]:
        """Takes the next 10 ms of original audio at 16 kHz, shape `(160,)`."""
        self.released_keys = []
        block = self._buffer.append(frame)
        music = self._music.advance(frame)
        if block is None and music is None:
            return ()
        heard = () if block is None else [*self._hear(block), *self._wait()]
        return [*heard, *self._told(SceneKind.MUSIC, music)]

    def pass_copy(self) -> Iterable[SceneEvent]:
        """The next 10 ms are a copy of the other channel's, where everything in them is told, silence too."""
        self._silence.speech_ended(self._buffer.now_ms)
        return self.advance(_NOTHING)

    def speech_began(self, begin_ms: int) -> Iterable[SceneEvent]:
        """Endpointing has found speech, in milliseconds of the channel's audio."""
        self._is_speaking = True
        return self._told(SceneKind.SILENCE, self._silence.speech_began(begin_ms))

    def speech_ended(self, end_ms: int) -> None:
        """And its end."""
        self._is_speaking = False
        self._silence.speech_ended(end_ms)

    def press_key(self, digit: str) -> Iterable[SceneEvent]:
        """The telephone system saw a key pressed now."""
        now_ms = self._buffer.now_ms
        if self._keys.is_news(digit, KeySource.MESSAGE, now_ms, now_ms):
            yield self._event(SceneKind.DTMF, now_ms, now_ms, is_over=True, digit=digit)

    def missing_audio(self, duration_ms: int) -> SceneEvent:
        """The sender has no audio for this long from here on."""
        now_ms = self._buffer.now_ms
        return self._event(SceneKind.MISSING_AUDIO, now_ms, now_ms + duration_ms, is_over=True)

    def skip(self, num_frames: int) -> Iterable[SceneEvent]:
        """Time passes without audio."""
        events = [*self._end_of_audio(), *self._told(SceneKind.MUSIC, self._music.skip(num_frames))]
        self._buffer.skip(num_frames)
        return [*events, *self._wait()]

    def end(self) -> Iterable[SceneEvent]:
        """The stream ends: what is still on is over."""
        silence = self._told(SceneKind.SILENCE, self._silence.end(self._buffer.now_ms))
        return [*self._end_of_audio(), *silence, *self._told(SceneKind.MUSIC, self._music.end())]

    def _hear(self, block: Block) -> Iterator[SceneEvent]:
        if block.energy >= _AUDIBLE_ENERGY:
            keys, ended = self._dtmf.advance(block), self._tones.advance(block)
        else:
            keys, ended = self._dtmf.rest(block), self._tones.rest()
        self._note_tones(block)
        yield from self._key_events(keys)
        current = self._tones.current
        if ended or current is not None or not self._cadence.is_idle:
            yield from self._tone_events(self._cadence.advance(block.end_ms, ended, current))

    def _note_tones(self, block: Block) -> None:
        if self._tones.is_tonal or self._dtmf.is_clear_key:
            self._hides_speech, self._tonal_ms, self._tonal_energy = True, block.end_ms, block.energy
        else:
            is_near = block.end_ms - self._tonal_ms <= _ECHO_MS
            self._hides_speech = self._hides_speech and is_near and block.energy < _ECHO_SHARE * self._tonal_energy

    def _wait(self) -> Iterator[SceneEvent]:
        if not self._is_speaking:
            yield from self._told(SceneKind.SILENCE, self._silence.advance(self._buffer.now_ms))

    def _end_of_audio(self) -> Iterator[SceneEvent]:
        yield from self._key_events(self._dtmf.end())
        yield from self._tone_events(self._cadence.end(self._tones.end()))

    def _key_events(self, keys: Iterable[KeyPress]) -> Iterator[SceneEvent]:
        for key in keys:
            self.released_keys.append(key)
            if self._keys.is_news(key.digit, KeySource.AUDIO, key.begin_ms, key.end_ms):
                yield self._event(SceneKind.DTMF, key.begin_ms, key.end_ms, is_over=True, digit=key.digit)

    def _tone_events(self, scenes: Iterable[ToneScene]) -> Iterator[SceneEvent]:
        for scene in scenes:
            yield self._event(scene.kind, scene.begin_ms, scene.end_ms, is_over=scene.is_over)

    def _told(self, kind: SceneKind, lasting: Lasting | None) -> Iterator[SceneEvent]:
        if lasting is not None:
            yield self._event(kind, lasting.begin_ms, lasting.end_ms, is_over=lasting.is_over)

    def _event(self, kind: SceneKind, begin_ms: int, end_ms: int, *, is_over: bool, digit: str = "") -> SceneEvent:
        return SceneEvent(
            kind=kind,
            channel_tag=self._channel_tag,
            offset_ms=self._start_ms + begin_ms,
            duration_ms=end_ms - begin_ms,
            is_over=is_over,
            digit=digit,
        )
