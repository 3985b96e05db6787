"""Word times: in order, inside the audio, and where the words are."""

from itertools import pairwise

import numpy as np
import pytest

from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.sources import LoadedModel
from pipeline.engines.whisper.timing import _path_starts
from pipeline.engines.whisper.vocabulary import Vocabulary
from pipeline.engines.whisper.words import split_words
from pipeline.types import Samples, Word
from tests.engines.support import CLIP_TEXTS, batch, clip, request, silence

_SHIFT_TOLERANCE_MS = 200


def _words(engine: WhisperEngine, audio: Samples) -> tuple[Word, ...]:
    return engine.transcribe(batch(request(audio, word_details=True)))[0].alternatives[0].words


@pytest.mark.parametrize("name", list(CLIP_TEXTS))
def test_words_spell_the_text_in_order(tiny: WhisperEngine, name: str) -> None:
    words = _words(tiny, clip(name))
    assert [w.text for w in words] == CLIP_TEXTS[name].split()
    assert all(0 <= w.start_ms < w.end_ms <= len(clip(name)) // 16 for w in words)
    assert all(first.end_ms <= second.start_ms for first, second in pairwise(words))
    assert all(w.start_ms % 20 == 0 for w in words)
    assert all(0 < w.confidence <= 1 for w in words)


def test_silence_in_front_and_behind_moves_the_words(tiny: WhisperEngine) -> None:
    words = _words(tiny, clip("order"))
    moved = _words(tiny, np.concatenate([silence(1), clip("order"), silence(2)]))
    assert [w.text for w in moved] == [w.text for w in words]
    for before, after in zip(words, moved, strict=True):
        assert after.start_ms - 1_000 == pytest.approx(before.start_ms, abs=_SHIFT_TOLERANCE_MS)
        assert after.end_ms - 1_000 == pytest.approx(before.end_ms, abs=_SHIFT_TOLERANCE_MS)


def test_a_pause_belongs_to_no_word(tiny: WhisperEngine) -> None:
    pause_ms = 1_500
    words = _words(tiny, np.concatenate([clip("hold"), silence(pause_ms / 1000), clip("address")]))
    hold_ms = len(clip("hold")) // 16
    before = [w for w in words if w.start_ms < hold_ms]
    after = [w for w in words if w.start_ms >= hold_ms]
    assert [w.text for w in before] == CLIP_TEXTS["hold"].split()
    assert before[-1].end_ms <= hold_ms + 100
    assert after[0].start_ms >= hold_ms + pause_ms - 100


def _slow_path_starts(cost: np.ndarray) -> list[int]:
    rows, columns = cost.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0
    for i in range(rows):
        for j in range(columns):
            total[i + 1, j + 1] = cost[i, j] + min(total[i, j], total[i, j + 1], total[i + 1, j])
    i, j, starts = rows, columns, [0] * rows
    while i > 1 or j > 1:
        options = {(i - 1, j - 1): total[i - 1, j - 1], (i - 1, j): total[i - 1, j], (i, j - 1): total[i, j - 1]}
        at = min(options, key=lambda k: options[k])
        if at[0] != i:
            starts[i - 1] = j - 1
        i, j = at
    return starts


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (6, 1), (5, 40), (30, 12)])
def test_the_path_is_the_cheapest(shape: tuple[int, int]) -> None:
    cost = np.random.default_rng(sum(shape)).normal(size=shape)
    starts = _path_starts(cost)
    assert starts.tolist() == _slow_path_starts(cost)
    assert (np.diff(starts) >= 0).all()


def _spell(vocabulary: Vocabulary, tokens: list[bytes]) -> list[int]:
    by_bytes = {vocabulary.decode_bytes([i]): i for i in range(vocabulary.end_of_text)}
    return [by_bytes[token] for token in tokens]


@pytest.mark.parametrize(
    ("tokens", "language_code", "expected"),
    [
        ([b" Hello", b",", b" world", b"!"], "en", ["Hello,", "world!"]),
        ([b" re", b"order", b" it", b"'s", b" fine"], "en", ["reorder", "it's", "fine"]),
        ([b' "', b"Yes", b'"', b" he", b" said", b"."], "en", ['"Yes"', "he", "said."]),
        ([b" twenty", b"-", b"one"], "en", ["twenty-one"]),
        ([bytes([b]) for b in "你好。".encode()], "zh", ["你", "好。"]),
        ([], "en", []),
    ],
)
def test_tokens_become_words(
    loaded_tiny: LoadedModel, tokens: list[bytes], language_code: str, expected: list[str]
) -> None:
    vocabulary = loaded_tiny.vocabulary
    ids = _spell(vocabulary, tokens)
    spans = split_words(vocabulary, ids, language_code)
    assert [span.text for span in spans] == expected
    assert [span.first for span in spans[1:]] == [span.end for span in spans[:-1]]


def test_a_character_of_several_tokens_stays_whole(loaded_tiny: LoadedModel) -> None:
    vocabulary = loaded_tiny.vocabulary
    ids = _spell(vocabulary, [b" caf", b"\xc3", b"\xa9", b" now"])
    assert [span.text for span in split_words(vocabulary, ids, "en")] == ["café", "now"]
    assert vocabulary.decode(ids[:2]) == "caf"
