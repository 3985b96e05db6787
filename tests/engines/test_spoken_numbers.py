"""Sixteen digits read in groups with pauses of 0.3 to 1.2 s: one result, with which digits?

Run with -s to see the numbers; `TALKPATH_NUMBER_CALLS=60` makes more calls.
"""

import os

import numpy as np
import pytest

from pipeline.config import SessionConfig
from pipeline.session import RecognitionSession
from pipeline.types import AudioEncoding, AudioFormat, DecodeHints
from tests.engines.support import finals_alone
from tests.support.audio import encode_mulaw
from tests.support.drivers import run_lockstep
from tests.support.rare_names import Voice, VoiceSettings, line

pytestmark = pytest.mark.slow

_NUM_CALLS = int(os.environ.get("TALKPATH_NUMBER_CALLS", "20"))
_LEAST = {"tiny.en": (0.8, 0.4), "base": (0.85, 0.5)}
"""Shares of calls that are one result, and that have every digit: to small models the voice's "eight" is often an A."""
_NUM_DIGITS = 16
_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_CONFIG = SessionConfig(
    audio_format=AudioFormat(encoding=AudioEncoding.MULAW, sample_rate_hz=8_000),
    hints=DecodeHints(language_code="en"),
)


def groups_of(digits, rng):
    """Fours, or two to five at a time as it comes; never a single one at the end."""
    start = 0
    fours = rng.random() < 0.5
    while start < len(digits):
        end = start + (4 if fours else int(rng.integers(2, 6)))
        end = len(digits) if end >= len(digits) - 1 else end
        yield digits[start:end]
        start = end


def read_aloud(voice, groups, settings, rng):
    """At 8 kHz on a line with faint noise."""
    parts = [np.zeros(line.SAMPLE_RATE_HZ, np.float32)]
    for group in groups:
        words = ", ".join(_NAMES[int(digit)] for digit in group)
        parts.append(voice.speak(f"{words}.", settings, line.SPEECH_LEVEL_DBFS))
        parts.append(np.zeros(int(line.SAMPLE_RATE_HZ * rng.uniform(0.3, 1.2)), np.float32))
    audio = np.concatenate([*parts, np.zeros(2 * line.SAMPLE_RATE_HZ, np.float32)])
    return audio + line.line_noise(len(audio), rng)


@pytest.mark.parametrize("model", ["tiny.en", "base"])
def test_sixteen_digits_with_pauses_are_one_number(model, request):
    pytest.importorskip("piper", reason="the voice is in the extra `dev`")
    engine = request.getfixturevalue({"tiny.en": "tiny", "base": "base"}[model])
    voice, rng = Voice.load(), np.random.default_rng(7)
    num_single = num_exact = 0
    for number in range(_NUM_CALLS):
        digits = "".join(rng.choice(list("0123456789"), _NUM_DIGITS))
        settings = VoiceSettings(shift=1.15 if number % 2 else 1.0, speed=1.0)
        audio = encode_mulaw(read_aloud(voice, groups_of(digits, rng), settings, rng))
        finals = run_lockstep(RecognitionSession(f"number-{number}", _CONFIG), [audio], finals_alone(engine)).finals
        num_single += len(finals) == 1
        num_exact += digits in " ".join(f.alternatives[0].formatted_transcript for f in finals if f.alternatives)
    print(f"\n{model}, 16 digits with pauses: {num_single} of {_NUM_CALLS} in one result, {num_exact} with every digit")
    least_single, least_exact = _LEAST[model]
    assert num_single >= least_single * _NUM_CALLS
    assert num_exact >= least_exact * _NUM_CALLS
