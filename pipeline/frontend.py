"""The audio side of one channel: a 10 ms frame in, what it means for speech out.

DC offset out, resampling, then the scene, then denoising and voice activity, then endpointing, then segmentation.

Tones are no speech: while the scene hears nothing else, the speech score is 0, so that no utterance begins on them and
none is prolonged by them. A key pressed while somebody speaks is taken out of the audio that is recognised.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.audio.resampling import Resampler
from pipeline.channels import Origin
from pipeline.config import DenoisingMode, SessionConfig
from pipeline.denoising import DenoisedMix, GatedDenoiser
from pipeline.endpointing import Endpointer, EndpointState, SpeechBegan, SpeechEnded
from pipeline.events import SceneEvent
from pipeline.line_level import LineLevel
from pipeline.offset import OffsetRemover
from pipeline.scene.presses import KeyPress
from pipeline.scene.removal import remove_tones
from pipeline.scene.track import SceneTrack
from pipeline.segmentation import OpenSegment, Segmenter
from pipeline.types import (
    CORE_SAMPLE_RATE_HZ,
    FRAME_MS,
    SAMPLES_PER_MS,
    EndReason,
    Samples,
    SpeechSegment,
)
from pipeline.vad import create_vad


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted:
    """Speech began here, call clock at 16 kHz."""

    sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStopped:
    """Speech ended here, call clock at 16 kHz."""

    sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechPaused:
    """Nobody has spoken for as long as is kept behind an utterance: if speech has ended, this is all of it."""

    heard: OpenSegment
    speech_end_sample: int
    """Call clock at 16 kHz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechResumed:
    """Speech goes on here after SpeechPaused, call clock at 16 kHz."""

    sample: int


FrontEndEvent = SpeechStarted | SpeechPaused | SpeechResumed | SpeechStopped | SpeechSegment | SceneEvent

_KEY_EDGE_FRAMES = 1
"""A key's first and last moments lie in frames that are mostly something else."""


class ChannelFrontEnd:
    """One channel from raw frames to speech segments; must be closed."""

    def __init__(self, channel_tag: int, config: SessionConfig) -> None:
        """Raises ComponentMissingError when a denoiser is asked for and not there."""
        self._start_sample = config.start_offset_ms * SAMPLES_PER_MS
        self._offset = OffsetRemover()
        self._resampler = Resampler(config.audio_format.sample_rate_hz, CORE_SAMPLE_RATE_HZ)
        self._mix = DenoisedMix() if config.denoising is DenoisingMode.MIX else None
        self._gate = GatedDenoiser() if config.denoising is DenoisingMode.VAD_ONLY else None
        self._vad = create_vad(config.vad)
        self._endpointer = Endpointer(config.endpointing)
        self._line = LineLevel()
        self._post_roll_frames = config.endpointing.post_roll_ms // FRAME_MS
        self._scene = SceneTrack(channel_tag, config)
        self._segmenter = Segmenter(channel_tag, config.endpointing, self._start_sample)
        self._has_paused = False

    @property
    def open_segment(self) -> OpenSegment | None:
        """The segment under way."""
        return self._segmenter.open_segment

    @property
    def is_voiced(self) -> bool:
        """Whether the newest frame carried speech."""
        return self._endpointer.state is EndpointState.SPEECH

    @property
    def speech_end_sample(self) -> int:
        """Where speech was last heard, call clock at 16 kHz."""
        return self._sample_at(self._endpointer.speech_end_frame)

    @property
    def earliest_needed_sample(self) -> int:
        """Audio before this is done with, call clock at 16 kHz."""
        return self._segmenter.earliest_needed_sample

    def advance(self, frame: Samples, origin: Origin = Origin.OWN) -> list[FrontEndEvent]:
        """Takes 10 ms at the source rate, shape `(frame_samples,)`; what is not the channel's own is no speech."""
        original = self._resampler.process(self._offset.remove(frame))
        scenes = self._scene.pass_copy() if origin is Origin.COPY else self._scene.advance(original)
        events: list[FrontEndEvent] = [*scenes]
        heard, score = self._listen(original, origin)
        if origin is not Origin.OWN:
            score = 0.0
        change = self._decide(score)
        self._segmenter.append(heard, score)
        for key in self._scene.released_keys:
            self._take_out(key)
        events += self._apply(change, EndReason.SILENCE)
        if self._pauses():
            events += self._pause()
        elif self._has_paused and self.is_voiced:
            self._has_paused = False
            events.append(SpeechResumed(sample=self.speech_end_sample - FRAME_MS * SAMPLES_PER_MS))
        if self._segmenter.is_at_limit:
            events.append(self._segmenter.split(self._endpointer.speech_end_frame, EndReason.MAX_LENGTH))
        return events

    def flush(self) -> list[FrontEndEvent]:
        """Closes the open segment; speech that goes on begins another one."""
        if not self._endpointer.is_speaking:
            return []
        if self._endpointer.state is EndpointState.HANGOVER:
            return self._apply(self._endpointer.end(), EndReason.FLUSH)
        return [self._segmenter.split(self._endpointer.speech_end_frame, EndReason.FLUSH)]

    def end(self) -> list[FrontEndEvent]:
        """The stream ends: closes everything, also speech that has only just begun."""
        events = self._apply(self._endpointer.flush(), EndReason.END_OF_STREAM)
        events += self._apply(self._endpointer.end(), EndReason.END_OF_STREAM)
        return [*events, *self._scene.end()]

    def skip(self, num_frames: int) -> list[FrontEndEvent]:
        """Time passes without audio."""
        events = self._apply(self._endpointer.end(), EndReason.SILENCE)
        self._endpointer.skip(num_frames)
        self._segmenter.skip(num_frames)
        self._resampler.reset()
        return [*events, *self._scene.skip(num_frames)]

    def press_key(self, digit: str) -> list[FrontEndEvent]:
        """The telephone system saw a key pressed here."""
        return [*self._scene.press_key(digit)]

    def miss_audio(self, duration_ms: int) -> list[FrontEndEvent]:
        """The sender has no audio for this long from here on."""
        return [self._scene.missing_audio(duration_ms)]

    def close(self) -> None:
        """Frees native state; may be called again."""
        for denoiser in (self._mix, self._gate):
            if denoiser is not None:
                denoiser.close()

    def _listen(self, original: Samples, origin: Origin) -> tuple[Samples, float]:
        """Returns what the engine shall hear of these 10 ms, and how likely they hold speech."""
        if self._mix is not None:
            heard, denoised = self._mix.process(original)
            return heard, self._score(denoised)
        self._line.hear(float(np.dot(original, original)))
        if origin is Origin.COPY:
            self._rest(original)
            return original, 0.0
        if self._line.is_at_rest and self._endpointer.state is EndpointState.SILENCE:
            self._rest(original)
            return original, 0.0
        return original, self._score(self._cleaned(original))

    def _score(self, cleaned: Samples) -> float:
        """How likely this is speech. Tones are not, whatever a detector thinks of them."""
        if self._scene.hides_speech:
            self._vad.rest(cleaned)
            return 0.0
        return self._vad.process(cleaned)

    def _decide(self, score: float) -> SpeechBegan | SpeechEnded | None:
        """A tone takes longer to recognise than speech to begin: where both are possible, it is waited for."""
        if self._scene.hides_speech:
            self._endpointer.withdraw()
        is_open = self._endpointer.state is EndpointState.SPEECH
        is_doubtful = not is_open and score >= self._endpointer.least_score and self._scene.may_be_tones()
        if is_doubtful and self._endpointer.is_speaking:
            return self._endpointer.advance(0.0)
        return self._endpointer.advance(score, is_doubtful=is_doubtful)

    def _cleaned(self, original: Samples) -> Samples:
        """What the detector shall hear: denoised while the line is noisy, and to the end of the utterance under way."""
        if self._gate is None:
            return original
        if self._line.is_noisy or self._endpointer.state is EndpointState.SILENCE:
            self._gate.is_open = self._line.is_noisy
        return self._gate.process(original)

    def _rest(self, original: Samples) -> None:
        """Spares denoiser and detector, but lets them keep what they need when they wake."""
        if self._gate is not None:
            self._gate.rest(original)
        self._vad.rest(original)

    def _pauses(self) -> bool:
        in_hangover = self._endpointer.state is EndpointState.HANGOVER
        return in_hangover and self._endpointer.silent_frames == self._post_roll_frames

    def _pause(self) -> list[FrontEndEvent]:
        heard = self._segmenter.closed_at(self._endpointer.speech_end_frame)
        self._has_paused = heard is not None
        return [] if heard is None else [SpeechPaused(heard=heard, speech_end_sample=self.speech_end_sample)]

    def _take_out(self, key: KeyPress) -> None:
        """Takes a key out of the audio to be recognised, which the mix with denoised audio has delayed."""
        delay_frames = 0 if self._mix is None else -(-self._mix.delay_ms // FRAME_MS)
        first_frame = key.begin_ms // FRAME_MS - _KEY_EDGE_FRAMES
        end_frame = key.end_ms // FRAME_MS + _KEY_EDGE_FRAMES + delay_frames + 1
        self._segmenter.revise(first_frame, end_frame, lambda frame: remove_tones(frame, key.frequencies_hz))

    def _apply(self, change: SpeechBegan | SpeechEnded | None, reason: EndReason) -> list[FrontEndEvent]:
        if isinstance(change, SpeechBegan):
            self._segmenter.open(change.frame)
            started = SpeechStarted(sample=self._sample_at(change.frame))
            return [started, *self._scene.speech_began(change.frame * FRAME_MS)]
        if isinstance(change, SpeechEnded):
            self._has_paused = False
            segment = self._segmenter.close(change.frame, reason)
            self._scene.speech_ended(change.frame * FRAME_MS)
            return [SpeechStopped(sample=self._sample_at(change.frame)), segment]
        return []

    def _sample_at(self, frame: int) -> int:
        return self._start_sample + frame * FRAME_MS * SAMPLES_PER_MS
