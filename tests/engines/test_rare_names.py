"""Fifty names that no model knows, spoken on a telephone line: how many are found without hints, and with them.

Run with -s to see the numbers.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import soxr

from pipeline.audio.codecs import decode
from pipeline.types import CORE_SAMPLE_RATE_HZ, DEFAULT_BOOST, AudioEncoding, SpeechContext
from tests.engines.support import batch, request, text
from tests.support.audio import encode_mulaw, load, manifest, require_data
from tests.support.rare_names import RARE_NAMES, speak_all

pytestmark = pytest.mark.slow

_NAMES = tuple(name for name, _ in RARE_NAMES)
_HINTS = (SpeechContext(phrases=_NAMES, boost=DEFAULT_BOOST),)
_MIN_LIFTED_SHARE = 0.5
"""Of the names that are missed without hints."""
_PIECE_SAMPLES = 15 * CORE_SAMPLE_RATE_HZ
_SPOKEN_KINDS = ("ivr-prompt", "phone-call", "read-speech")


@dataclass(frozen=True)
class Clip:
    name: str
    audio: np.ndarray


def over_the_line(audio_8k):
    return soxr.resample(decode(encode_mulaw(audio_8k), AudioEncoding.MULAW, 1)[0], 8_000, CORE_SAMPLE_RATE_HZ).astype(
        np.float32
    )


@pytest.fixture(scope="module")
def clips():
    pytest.importorskip("piper", reason="the voice is in the extra `dev`")
    return [Clip(name, over_the_line(audio)) for name, _, audio in speak_all()]


@pytest.mark.parametrize("is_final", [True, False])
def test_hints_find_most_names_that_are_missed_without(tiny, clips, is_final):
    found = {}
    for hints in ((), _HINTS):
        texts = [
            text(tiny.transcribe(batch(request(c.audio, is_final=is_final, speech_contexts=hints)))[0]) for c in clips
        ]
        found[hints] = [c.name.lower() in t.lower() for c, t in zip(clips, texts, strict=True)]
        wrong = [(c.name, n) for c, t in zip(clips, texts, strict=True) for n in _NAMES if n in t and n != c.name]
        assert wrong == []
    plain, hinted = sum(found[()]), sum(found[_HINTS])
    print(
        f"\nnames found, {'finals' if is_final else 'interims'}: {plain} without hints, {hinted} with, of {len(clips)}"
    )
    assert hinted - plain >= _MIN_LIFTED_SHARE * (len(clips) - plain)
    assert all(after or not before for before, after in zip(found[()], found[_HINTS], strict=True))


@pytest.mark.data
def test_other_recordings_hold_no_hinted_names(tiny):
    """Speech without the names has the same text with and without hints, so its word errors are the same too."""
    folder = require_data()
    inserted, changed, audio_s = [], [], 0.0
    for row in manifest(folder):
        is_speech = row["kind"] in _SPOKEN_KINDS and str(row["language"]).startswith("en")
        if not is_speech and row["kind"] not in ("noise", "music", "dtmf"):
            continue
        for channel in load(folder / str(row["path"]), 8_000):
            audio = over_the_line(channel)
            for start in range(0, len(audio), _PIECE_SAMPLES):
                piece = audio[start : start + _PIECE_SAMPLES]
                written = text(tiny.transcribe(batch(request(piece, speech_contexts=_HINTS)))[0])
                audio_s += len(piece) / CORE_SAMPLE_RATE_HZ
                if any(name.lower() in written.lower() for name in _NAMES):
                    inserted.append((row["path"], start))
                if written != text(tiny.transcribe(batch(request(piece)))[0]):
                    changed.append((row["path"], start))
    print(
        f"\n{audio_s / 60:.1f} minutes without the names: {len(inserted)} false inserts, {len(changed)} texts changed"
    )
    assert inserted == []
    assert changed == []
