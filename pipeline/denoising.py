"""RNNoise (Valin 2018, arXiv:1709.08243) on one channel: noise suppression and a speech probability.

The library comes inside the package `pyrnnoise`. It is called directly: importing that package would pull in a
plotting library, and its wrapper rounds every frame to 16 bits.
"""

import ctypes
from collections import deque
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from pipeline.audio.resampling import Resampler
from pipeline.errors import ComponentMissingError
from pipeline.types import CORE_SAMPLE_RATE_HZ, FRAME_MS, SAMPLES_PER_MS, Samples

_RNNOISE_RATE_HZ = 48_000
_RNNOISE_FRAME_SAMPLES = 480
_INT16_SCALE = 32768.0
_FLOATS = ctypes.POINTER(ctypes.c_float)

RNNOISE_DELAY_MS = 2 * FRAME_MS
"""One frame for the overlap-add of 20 ms windows, one that this RNNoise (0.2) looks ahead."""
_WARM_UP_FRAMES = 20
"""What RNNoise has to hear before its picture of the noise is sound."""
WET_SHARE = 0.3
"""Share of denoised audio in the mix. All of it costs recognition more than the noise did: suppression takes
consonants away, and Whisper was trained on noise."""


@lru_cache(maxsize=1)
def _library() -> Any:
    spec = find_spec("pyrnnoise")
    if spec is None or not spec.submodule_search_locations:
        raise ComponentMissingError(
            "denoising needs RNNoise, but the package pyrnnoise is not installed; install it or set denoising to off"
        )
    path = f"{spec.submodule_search_locations[0]}/librnnoise.so"
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ComponentMissingError(
            f"RNNoise cannot be loaded ({error}); reinstall pyrnnoise or set denoising to off"
        ) from error
    library.rnnoise_create.argtypes = [ctypes.c_void_p]
    library.rnnoise_create.restype = ctypes.c_void_p
    library.rnnoise_destroy.argtypes = [ctypes.c_void_p]
    library.rnnoise_process_frame.argtypes = [ctypes.c_void_p, _FLOATS, _FLOATS]
    library.rnnoise_process_frame.restype = ctypes.c_float
    return library


class Denoiser:
    """Suppresses noise in one channel at 16 kHz; must be closed, since it holds native memory."""

    delay_ms = RNNOISE_DELAY_MS + 4
    """Of the denoised audio against the input: RNNoise and two resamplers of 2 ms."""

    def __init__(self) -> None:
        """Raises ComponentMissingError when RNNoise is not there."""
        self._library = _library()
        self._state = self._library.rnnoise_create(None)
        self._to_48k = Resampler(CORE_SAMPLE_RATE_HZ, _RNNOISE_RATE_HZ)
        self._to_16k = Resampler(_RNNOISE_RATE_HZ, CORE_SAMPLE_RATE_HZ)
        self._buffer = np.zeros(_RNNOISE_FRAME_SAMPLES, dtype=np.float32)
        self._pointer = self._buffer.ctypes.data_as(_FLOATS)
        self.speech_probability = 0.0
        """RNNoise's own, of the newest frame."""

    def process(self, frame: Samples) -> Samples:
        """Takes 10 ms, shape `(160,)`; returns 10 ms of denoised audio, `delay_ms` late."""
        self._buffer[:] = self._to_48k.process(frame) * _INT16_SCALE
        self.speech_probability = self._library.rnnoise_process_frame(self._state, self._pointer, self._pointer)
        return self._to_16k.process(self._buffer) / np.float32(_INT16_SCALE)

    def close(self) -> None:
        """Frees the native state; may be called again."""
        if self._state is not None:
            self._library.rnnoise_destroy(self._state)
            self._state = None

    def __del__(self) -> None:
        if getattr(self, "_state", None) is not None:
            self.close()


class GatedDenoiser:
    """A denoiser that runs only while its gate is open; else audio passes as it is, without delay."""

    def __init__(self) -> None:
        """Raises ComponentMissingError when RNNoise is not there."""
        self.is_open = False
        self._denoiser = Denoiser()
        self._unheard: deque[Samples] = deque(maxlen=_WARM_UP_FRAMES)
        """Newest frames that RNNoise was spared."""

    def process(self, frame: Samples) -> Samples:
        """Takes 10 ms, shape `(160,)`; returns 10 ms, `Denoiser.delay_ms` late if the gate is open."""
        if not self.is_open:
            self._unheard.append(frame)
            return frame
        while self._unheard:
            self._denoiser.process(self._unheard.popleft())
        return self._denoiser.process(frame)

    def rest(self, frame: Samples) -> None:
        """Takes 10 ms that nobody needs denoised."""
        self._unheard.append(frame)

    def close(self) -> None:
        """Frees the native state; may be called again."""
        self._denoiser.close()


class Mixer:
    """Adds denoised audio to the original, which it delays by as much as the denoiser does."""

    def __init__(self, delay_ms: int, wet_share: float = WET_SHARE) -> None:
        self._wet = np.float32(wet_share)
        self._late = np.zeros(delay_ms * SAMPLES_PER_MS, dtype=np.float32)

    def process(self, original: Samples, denoised: Samples) -> Samples:
        """Both shape `(160,)`; returns the mix, `delay_ms` late."""
        line = np.concatenate((self._late, original))
        self._late = line[len(original) :]
        return (1 - self._wet) * line[: len(original)] + self._wet * denoised


class DenoisedMix:
    """A denoiser that always runs, for audio that shall be heard and not only measured."""

    delay_ms = Denoiser.delay_ms

    def __init__(self) -> None:
        """Raises ComponentMissingError when RNNoise is not there."""
        self._denoiser = Denoiser()
        self._mixer = Mixer(Denoiser.delay_ms)

    def process(self, frame: Samples) -> tuple[Samples, Samples]:
        """Takes 10 ms, shape `(160,)`; returns the mix and the denoised audio, both `Denoiser.delay_ms` late."""
        denoised = self._denoiser.process(frame)
        return self._mixer.process(frame, denoised), denoised

    def close(self) -> None:
        """Frees the native state; may be called again."""
        self._denoiser.close()
