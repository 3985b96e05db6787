"""The audio side of one channel: a 10 ms frame in, what it means for speech out.

DC offset out, resampling, then denoising and voice activity, then endpointing, then segmentation.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.audio.resampling import Resampler
from pipeline.config import DenoisingMode, SessionConfig
from pipeline.denoising import DenoisedMix, GatedDenoiser
from pipeline.endpointing import Endpointer, EndpointState, SpeechBegan, SpeechEnded
from pipeline.line_level import LineLevel
from pipeline.offset import OffsetRemover
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


FrontEndEvent = SpeechStarted | SpeechPaused | SpeechStopped | SpeechSegment


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
        self._segmenter = Segmenter(channel_tag, config.endpointing, self._start_sample)

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

    def advance(self, frame: Samples) -> list[FrontEndEvent]:
        """Takes 10 ms at the source rate, shape `(frame_samples,)`."""
        heard, score = self._listen(self._resampler.process(self._offset.remove(frame)))
        change = self._endpointer.advance(score)
        self._segmenter.append(heard)
        events = self._apply(change, EndReason.SILENCE)
        if self._pauses():
            events += self._pause()
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
        return events + self._apply(self._endpointer.end(), EndReason.END_OF_STREAM)

    def skip(self, num_frames: int) -> list[FrontEndEvent]:
        """Time passes without audio."""
        events = self._apply(self._endpointer.end(), EndReason.SILENCE)
        self._endpointer.skip(num_frames)
        self._segmenter.skip(num_frames)
        self._resampler.reset()
        return events

    def close(self) -> None:
        """Frees native state; may be called again."""
        for denoiser in (self._mix, self._gate):
            if denoiser is not None:
                denoiser.close()

    def _listen(self, original: Samples) -> tuple[Samples, float]:
        """Returns what the engine shall hear of these 10 ms, and how likely they hold speech."""
        if self._mix is not None:
            heard, denoised = self._mix.process(original)
            return heard, self._vad.process(denoised)
        self._line.hear(float(np.dot(original, original)))
        if self._line.is_at_rest and self._endpointer.state is EndpointState.SILENCE:
            self._rest(original)
            return original, 0.0
        return original, self._vad.process(self._cleaned(original))

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
        return [] if heard is None else [SpeechPaused(heard=heard, speech_end_sample=self.speech_end_sample)]

    def _apply(self, change: SpeechBegan | SpeechEnded | None, reason: EndReason) -> list[FrontEndEvent]:
        if isinstance(change, SpeechBegan):
            self._segmenter.open(change.frame)
            return [SpeechStarted(sample=self._sample_at(change.frame))]
        if isinstance(change, SpeechEnded):
            segment = self._segmenter.close(change.frame, reason)
            return [SpeechStopped(sample=self._sample_at(change.frame)), segment]
        return []

    def _sample_at(self, frame: int) -> int:
        return self._start_sample + frame * FRAME_MS * SAMPLES_PER_MS
