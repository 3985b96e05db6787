"""The audio side of one channel: a 10 ms frame in, what it means for speech out.

resampling, then denoising and voice activity, then endpointing, then segmentation.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.audio.resampling import Resampler
from pipeline.config import DenoisingMode, SessionConfig
from pipeline.denoising import Denoiser, Mixer
from pipeline.endpointing import Endpointer, EndpointState, SpeechBegan, SpeechEnded
from pipeline.segmentation import OpenSegment, Segmenter
from pipeline.types import (
    CORE_SAMPLE_RATE_HZ,
    FRAME_MS,
    FRAME_SAMPLES,
    SAMPLES_PER_MS,
    EndReason,
    Samples,
    SpeechSegment,
)
from pipeline.vad import create_vad

_QUIET_RMS = 1e-3
"""-60 dBFS: below the quietest speech that a line carries (-45 dBFS), above the noise of a clean one."""
_QUIET_FRAME_ENERGY = FRAME_SAMPLES * _QUIET_RMS**2
_QUIET_FRAMES_BEFORE_REST = 30
"""Until the detectors have surely let go of what was said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted:
    """Speech began here, call clock at 16 kHz."""

    sample: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStopped:
    """Speech ended here, call clock at 16 kHz."""

    sample: int


FrontEndEvent = SpeechStarted | SpeechStopped | SpeechSegment


class ChannelFrontEnd:
    """One channel from raw frames to speech segments; must be closed."""

    def __init__(self, channel_tag: int, config: SessionConfig) -> None:
        """Raises ComponentMissingError when a denoiser is asked for and not there."""
        self._start_sample = config.start_offset_ms * SAMPLES_PER_MS
        self._resampler = Resampler(config.audio_format.sample_rate_hz, CORE_SAMPLE_RATE_HZ)
        self._denoiser = None if config.denoising is DenoisingMode.OFF else Denoiser()
        self._mixer = Mixer(Denoiser.delay_ms) if config.denoising is DenoisingMode.MIX else None
        self._vad = create_vad(config.vad)
        self._endpointer = Endpointer(config.endpointing)
        self._quiet_frames = 0
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
        original = self._resampler.process(frame)
        if self._may_rest(original):
            heard, score = original, 0.0
        else:
            denoised = self._denoiser.process(original) if self._denoiser else original
            heard = self._mixer.process(original, denoised) if self._mixer else original
            score = self._vad.process(denoised)
        change = self._endpointer.advance(score)
        self._segmenter.append(heard)
        events = self._apply(change, EndReason.SILENCE)
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
        if self._denoiser is not None:
            self._denoiser.close()

    def _may_rest(self, frame: Samples) -> bool:
        """Whether the denoiser and detector can be spared: nobody speaks and the line has been quiet for a while.

        Not while mixing, since what is heard goes through the denoiser.
        """
        is_quiet = float(np.dot(frame, frame)) < _QUIET_FRAME_ENERGY
        self._quiet_frames = self._quiet_frames + 1 if is_quiet else 0
        rested = self._quiet_frames > _QUIET_FRAMES_BEFORE_REST
        return rested and self._mixer is None and self._endpointer.state is EndpointState.SILENCE

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
