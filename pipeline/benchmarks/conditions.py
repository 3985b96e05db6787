"""Bad lines, made from good recordings: noise of a kind at a signal-to-noise ratio, levels, clipping.

A signal's level is that of its active part (as in ITU-T P.56, here simply: all 10 ms within 30 dB of the loudest), so
that pauses do not count; noise is measured whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pipeline.audio.codecs import to_int16
from pipeline.audio.resampling import Resampler
from pipeline.config import DenoisingMode, InterimConfig, SessionConfig
from pipeline.engines.base import Engine
from pipeline.errors import EngineError
from pipeline.events import RecognitionResult
from pipeline.session import NEED_AUDIO, RecognitionSession
from pipeline.types import (
    CORE_SAMPLE_RATE_HZ,
    FRAME_SAMPLES,
    AudioEncoding,
    AudioFormat,
    Batch,
    DecodeRequest,
    DecodeResult,
    Samples,
)

TELEPHONE_HZ = 8_000
SNRS_DB = (20, 10, 5)
LEVELS_DBFS = (-20, -35, -45)
_SPEECH_DBFS = -23.0
"""Of the speech that noise is added to."""
_CLIPPED_BY_DB = 12.0
_PEAK_OVER_LEVEL_DB = 12.0
"""Peaks of speech over its level, roughly: what is raised by this and more clips."""
_ACTIVE_RANGE = 1e-3
_LEAD_SAMPLES, _TAIL_SAMPLES = CORE_SAMPLE_RATE_HZ // 2, CORE_SAMPLE_RATE_HZ
"""Audio of the line before and behind what is said: detectors need to hear it alone."""
_BABBLE_VOICES = 6
_BROWN_LEAK = 0.98
_BROWN_SAMPLES = 512
_HIGHEST = 32_767 / 32_768

Make = Callable[[Samples, np.random.Generator], Samples]
"""Speech with its surroundings to what the line carries, both at 16 kHz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One kind of line."""

    kind: str
    degree: str
    make: Make = field(repr=False)


def conditions(voices: Sequence[Samples], recorded: dict[str, Samples]) -> list[Condition]:
    """All that are measured.

    Args:
        voices: speech at 16 kHz, to make babble from.
        recorded: noises at 16 kHz, by name.
    """
    noises: dict[str, Callable[[int, np.random.Generator], Samples]] = {
        "white noise": lambda count, generator: generator.standard_normal(count).astype(np.float32),
        "babble": lambda count, generator: _babble(voices, count, generator),
        "car": _brown,
    }
    for name, noise in recorded.items():
        noises[name] = lambda count, generator, noise=noise: _cut(noise, count, generator)  # type: ignore[misc]
    found = [Condition(kind="clean", degree="", make=lambda speech, _: at_level(speech, _SPEECH_DBFS))]
    for kind, noise_of in noises.items():
        found += [Condition(kind=kind, degree=f"{snr_db} dB", make=_noisy(noise_of, snr_db)) for snr_db in SNRS_DB]
    found += [Condition(kind="level", degree=f"{level} dBFS", make=_at(level)) for level in LEVELS_DBFS]
    overdriven_dbfs = _CLIPPED_BY_DB - _PEAK_OVER_LEVEL_DB
    found.append(Condition(kind="clipped", degree=f"{_CLIPPED_BY_DB:.0f} dB", make=_at(overdriven_dbfs)))
    return found


def level_dbfs(samples: Samples) -> float:
    """Of the active part."""
    frames = samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    powers = np.square(frames, dtype=np.float64).mean(axis=1)
    return float(10 * np.log10(max(1e-20, powers[powers >= _ACTIVE_RANGE * powers.max()].mean())))


def at_level(samples: Samples, wanted_dbfs: float) -> Samples:
    """The same, louder or quieter."""
    return samples * np.float32(10 ** ((wanted_dbfs - level_dbfs(samples)) / 20))


def _at(wanted_dbfs: float) -> Make:
    return lambda speech, _: at_level(speech, wanted_dbfs)


def _noisy(noise_of: Callable[[int, np.random.Generator], Samples], snr_db: float) -> Make:
    def make(speech: Samples, generator: np.random.Generator) -> Samples:
        noise = noise_of(len(speech), generator)
        rms = float(np.sqrt(np.mean(np.square(noise, dtype=np.float64))))
        gain = 10 ** ((_SPEECH_DBFS - snr_db) / 20) / max(rms, 1e-9)
        return at_level(speech, _SPEECH_DBFS) + noise * np.float32(gain)

    return make


def _brown(count: int, generator: np.random.Generator) -> Samples:
    """White noise through a leaky integrator, as an impulse response long enough for its leak."""
    response = _BROWN_LEAK ** np.arange(_BROWN_SAMPLES)
    filtered = np.convolve(generator.standard_normal(count + len(response) - 1), response, mode="valid")
    return np.asarray(filtered, dtype=np.float32)


def _babble(voices: Sequence[Samples], count: int, generator: np.random.Generator) -> Samples:
    mixed = np.zeros(count, dtype=np.float32)
    for index in generator.integers(len(voices), size=_BABBLE_VOICES):
        mixed += at_level(_cut(voices[index], count, generator), _SPEECH_DBFS)
    return mixed


def _cut(samples: Samples, count: int, generator: np.random.Generator) -> Samples:
    """As much as is wanted, from anywhere, over and over."""
    return np.resize(np.roll(samples, int(generator.integers(len(samples)))), count)


class LineListener:
    """What a server's session makes of a line, without interims."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[bytes, DecodeResult] = {}
        """By audio: what a denoiser leaves alone is not decoded again."""

    def words(self, speech: Samples, condition: Condition, denoising: DenoisingMode, seed: int) -> str:
        """The transcript of speech at 16 kHz under a condition; the same seed gives the same noise.

        Raises:
            EngineError: The engine does not decode.
        """
        line = condition.make(np.pad(speech, (_LEAD_SAMPLES, _TAIL_SAMPLES)), np.random.default_rng(seed))
        config = SessionConfig(
            audio_format=AudioFormat(encoding=AudioEncoding.LINEAR16, sample_rate_hz=TELEPHONE_HZ),
            denoising=denoising,
            interim=InterimConfig(enabled=False),
        )
        session = RecognitionSession("conditions", config)
        try:
            session.receive_audio(_over_telephone(line))
            session.receive_end()
            return " ".join(self._finals(session))
        finally:
            session.close()

    def _finals(self, session: RecognitionSession) -> list[str]:
        texts = []
        while (effect := session.next_effect()) is not NEED_AUDIO:
            if isinstance(effect, DecodeRequest):
                session.receive_decode(self._decode(effect))
            elif isinstance(effect, RecognitionResult) and effect.is_final and effect.alternatives:
                texts.append(effect.alternatives[0].transcript)
        return texts

    def _decode(self, request: DecodeRequest) -> DecodeResult:
        audio = request.audio.tobytes()
        if audio not in self._known:
            batch = Batch(requests=(request,), padded_audio_s=len(request.audio) / CORE_SAMPLE_RATE_HZ)
            self._known[audio] = self._engine.transcribe(batch)[0]
        found = self._known[audio]
        if found.error is not None:
            raise EngineError(found.error)
        return DecodeResult(request_id=request.request_id, alternatives=found.alternatives)

    def forget(self) -> None:
        """Another line follows."""
        self._known.clear()


def _over_telephone(line: Samples) -> bytes:
    """LINEAR16 at 8 kHz; what is too loud is clipped."""
    resampler = Resampler(CORE_SAMPLE_RATE_HZ, TELEPHONE_HZ)
    frames = line[: len(line) // FRAME_SAMPLES * FRAME_SAMPLES].reshape(-1, FRAME_SAMPLES)
    narrow = np.concatenate([resampler.process(frame) for frame in frames])
    return to_int16(np.clip(narrow, -1, _HIGHEST).astype(np.float32)).astype("<i2").tobytes()
