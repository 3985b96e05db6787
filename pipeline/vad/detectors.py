"""One detector per way of measuring speech; all answer every 10 ms with a score from 0 to 1.

WebRTC's detector (Gaussian mixtures on sub-bands) reacts within a frame but takes tones and noise for speech;
Silero (a recurrent network) tells speech from sound but answers every 32 ms only. The combined score needs both.
"""

from collections import deque
from typing import Protocol

import numpy as np
import webrtcvad

from pipeline.audio.codecs import to_int16
from pipeline.config import VadMode
from pipeline.types import CORE_SAMPLE_RATE_HZ, Samples
from pipeline.vad.silero import CHUNK_SAMPLES, SileroNetwork

_WEBRTC_AGGRESSIVENESS = 2
_VOTE_FRAMES = 6
_SILERO_WEIGHT = 0.75
_INAUDIBLE_RMS = 1e-4
"""-80 dBFS: no line carries speech this low, so the network need not look."""
_INAUDIBLE_CHUNK_ENERGY = CHUNK_SAMPLES * _INAUDIBLE_RMS**2


class VoiceActivityDetector(Protocol):
    """One channel's detector."""

    def process(self, frame: Samples) -> float:
        """Takes 10 ms at 16 kHz, shape `(160,)`; returns the speech score, 0 to 1."""
        ...

    def rest(self, frame: Samples) -> None:
        """Takes 10 ms in which surely nobody speaks: keeps what later scores need and measures nothing."""
        ...


class WebRtcVad:
    """WebRTC's detector, smoothed over 60 ms."""

    def __init__(self) -> None:
        self._vad = webrtcvad.Vad(_WEBRTC_AGGRESSIVENESS)
        self._votes: deque[bool] = deque([False] * _VOTE_FRAMES, maxlen=_VOTE_FRAMES)

    def process(self, frame: Samples) -> float:
        """See VoiceActivityDetector."""
        self._votes.append(self._vad.is_speech(to_int16(frame).tobytes(), CORE_SAMPLE_RATE_HZ))
        return self._votes.count(True) / _VOTE_FRAMES

    def rest(self, frame: Samples) -> None:
        """See VoiceActivityDetector."""
        self._votes.append(False)


class SileroVad:
    """Silero's network; its answer to a chunk of 32 ms holds until the next."""

    def __init__(self) -> None:
        """Raises ComponentMissingError when the network's weights are not there."""
        self._network = SileroNetwork()
        self._network.begin_on_quiet_line()
        self._chunk = np.zeros(CHUNK_SAMPLES, dtype=np.float32)
        self._filled_samples = 0
        self._probability = 0.0

    def process(self, frame: Samples) -> float:
        """See VoiceActivityDetector."""
        if self._fill(frame):
            self._probability = self._measure()
            self._begin_chunk(frame)
        return self._probability

    def rest(self, frame: Samples) -> None:
        """See VoiceActivityDetector. The network's memory stays as it is: that of a quiet line."""
        if self._fill(frame):
            self._network.skip(self._chunk)
            self._begin_chunk(frame)
        self._probability = 0.0

    def _fill(self, frame: Samples) -> bool:
        """Appends what fits of the frame; returns whether the chunk is full."""
        start, end = self._filled_samples, self._filled_samples + len(frame)
        self._filled_samples = end
        self._chunk[start:end] = frame[: CHUNK_SAMPLES - start]
        return end >= CHUNK_SAMPLES

    def _begin_chunk(self, frame: Samples) -> None:
        """Starts the next chunk with the rest of the frame that filled the last one."""
        self._filled_samples -= CHUNK_SAMPLES
        self._chunk[: self._filled_samples] = frame[len(frame) - self._filled_samples :]

    def _measure(self) -> float:
        if float(np.dot(self._chunk, self._chunk)) < _INAUDIBLE_CHUNK_ENERGY:
            self._network.skip(self._chunk)
            return 0.0
        return self._network.process(self._chunk)


class CombinedVad:
    """Silero's probability and WebRTC's votes in one score."""

    def __init__(self) -> None:
        """Raises ComponentMissingError when the weights of Silero's network are not there."""
        self._silero = SileroVad()
        self._webrtc = WebRtcVad()

    def process(self, frame: Samples) -> float:
        """See VoiceActivityDetector."""
        silero, webrtc = self._silero.process(frame), self._webrtc.process(frame)
        return _SILERO_WEIGHT * silero + (1 - _SILERO_WEIGHT) * webrtc

    def rest(self, frame: Samples) -> None:
        """See VoiceActivityDetector."""
        self._silero.rest(frame)
        self._webrtc.rest(frame)


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

    def rest(self, frame: Samples) -> None:
        """See VoiceActivityDetector. The floor goes on following the line."""
        self.process(frame)


def create_vad(mode: VadMode) -> VoiceActivityDetector:
    """Makes a detector for one channel.

    Raises:
        ComponentMissingError: a detector's model is not there.
    """
    detectors: dict[VadMode, type[WebRtcVad] | type[SileroVad] | type[CombinedVad] | type[EnergyVad]] = {
        VadMode.COMBINED: CombinedVad,
        VadMode.WEBRTC: WebRtcVad,
        VadMode.SILERO: SileroVad,
        VadMode.ENERGY: EnergyVad,
    }
    return detectors[mode]()
