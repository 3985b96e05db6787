"""Fifty names that no model knows, spoken on a telephone line: how many are found without hints, and with them.

Run with -s to see the numbers; `TALKPATH_OTHER_SPEECH_MINUTES=60` hears an hour of speech without the names: what there
is of recordings, then the same in other pitches.
"""

import os
from dataclasses import dataclass

import numpy as np
import pytest
import soxr

from pipeline.audio.codecs import decode
from pipeline.types import CORE_SAMPLE_RATE_HZ, DEFAULT_BOOST, AudioEncoding, SpeechContext
from tests.engines.support import batch, request, text
from tests.support.audio import encode_mulaw, load, manifest, require_data
from tests.support.rare_names import HELD_OUT_NAMES, RARE_NAMES, speak_all

pytestmark = pytest.mark.slow

_NAMES = tuple(name for name, _ in RARE_NAMES)
_HELD_OUT = tuple(name for name, _ in HELD_OUT_NAMES)


def hints_of(names):
    return (SpeechContext(phrases=names, boost=DEFAULT_BOOST),)


_HINTS = hints_of(_NAMES)
_MIN_LIFTED_SHARE = 0.5
"""Of the names that are missed without hints."""
_PIECE_SAMPLES = 15 * CORE_SAMPLE_RATE_HZ
_SPEEDS = (1.0, 0.94, 1.06, 0.97, 1.03)
_SPOKEN_KINDS = ("ivr-prompt", "phone-call", "read-speech")


@dataclass(frozen=True)
class Clip:
    name: str
    audio: np.ndarray


def over_the_line(audio_8k):
    return soxr.resample(decode(encode_mulaw(audio_8k), AudioEncoding.MULAW, 1)[0], 8_000, CORE_SAMPLE_RATE_HZ).astype(
        np.float32
    )


@pytest.fixture(scope="module", params=[RARE_NAMES, HELD_OUT_NAMES], ids=["chosen-with", "held-out"])
def clips(request):
    pytest.importorskip("piper", reason="the voice is in the extra `dev`")
    return [Clip(name, over_the_line(audio)) for name, _, audio in speak_all(request.param)]


@pytest.mark.parametrize("is_final", [True, False])
def test_hints_find_most_names_that_are_missed_without(tiny, clips, is_final):
    names = tuple(clip.name for clip in clips)
    found = {}
    for hints in ((), hints_of(names)):
        texts = [
            text(tiny.transcribe(batch(request(c.audio, is_final=is_final, speech_contexts=hints)))[0]) for c in clips
        ]
        found[hints] = [c.name.lower() in t.lower() for c, t in zip(clips, texts, strict=True)]
        wrong = [(c.name, n) for c, t in zip(clips, texts, strict=True) for n in names if n in t and n != c.name]
        assert wrong == []
    without, hinted = (sum(row) for row in found.values())
    kind = "finals" if is_final else "interims"
    print(f"\nnames found, {kind}: {without} without hints, {hinted} with, of {len(clips)}")
    assert hinted - without >= _MIN_LIFTED_SHARE * (len(clips) - without)
    before, after = found.values()
    assert all(a or not b for b, a in zip(before, after, strict=True))


@pytest.mark.data
@pytest.mark.parametrize("names", [_NAMES, _HELD_OUT], ids=["chosen-with", "held-out"])
def test_other_recordings_hold_no_hinted_names(tiny, names):
    """Speech without the names has the same text with and without hints, so its word errors are the same too."""
    wanted_s = 60.0 * float(os.environ.get("TALKPATH_OTHER_SPEECH_MINUTES", "1" if names is _HELD_OUT else "25"))
    inserted, changed, audio_s = [], [], 0.0
    for where, piece in other_speech():
        written = text(tiny.transcribe(batch(request(piece, speech_contexts=hints_of(names))))[0])
        audio_s += len(piece) / CORE_SAMPLE_RATE_HZ
        if any(name.lower() in written.lower() for name in names):
            inserted.append(where)
        if written != text(tiny.transcribe(batch(request(piece)))[0]):
            changed.append(where)
        if audio_s >= wanted_s:
            break
    print(
        f"\n{audio_s / 60:.1f} minutes without the names: {len(inserted)} false inserts, {len(changed)} texts changed"
    )
    assert inserted == []
    assert changed == []


def other_speech():
    """Pieces of recordings as a telephone line carries them; when they are used up, the same in other pitches."""
    folder = require_data()
    rows = [row for row in manifest(folder) if _is_heard(row)]
    for speed in _SPEEDS:
        for row in rows:
            for channel in load(folder / str(row["path"]), 8_000):
                audio = over_the_line(channel if speed == 1.0 else soxr.resample(channel, 8_000, 8_000 / speed))
                for start in range(0, len(audio), _PIECE_SAMPLES):
                    yield (row["path"], speed, start), audio[start : start + _PIECE_SAMPLES]


def _is_heard(row):
    is_speech = row["kind"] in _SPOKEN_KINDS and str(row["language"]).startswith("en")
    return is_speech or row["kind"] in ("noise", "music", "dtmf")
