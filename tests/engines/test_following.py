"""Utterances under way: settled audio is not encoded again, and the interims hardly tell."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from pipeline.engines.whisper.contexts import GrowingStates, SegmentContexts
from pipeline.engines.whisper.engine import WhisperEngine
from pipeline.engines.whisper.features import LogMel
from pipeline.engines.whisper.settings import WhisperSettings
from pipeline.types import Samples
from tests.engines.support import CLIP_TEXTS, batch, clip, request, text

_CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def log_mel() -> LogMel:
    return LogMel(80, _CPU)


def _lengths(audio: Samples, step: int) -> Iterator[int]:
    return iter(range(step, len(audio) + 1, step))


@pytest.mark.parametrize("step", [37, 1_600, 8_000, 16_000])
def test_frames_grow_to_what_they_would_be(log_mel: LogMel, step: int) -> None:
    audio = torch.from_numpy(clip("order"))[: 200 * step]
    frames, known = log_mel.frames(audio[:0]), 0
    for length in _lengths(audio.numpy(), step):
        frames, known = log_mel.extend(frames, known, audio[:length]), length
    torch.testing.assert_close(frames, log_mel.frames(audio[:known]), atol=1e-4, rtol=0)


def test_frames_grow_up_to_the_whole_window(log_mel: LogMel) -> None:
    audio = torch.from_numpy(np.tile(clip("order"), 12))
    frames = log_mel.frames(audio[: 29 * 16_000])
    for seconds in (29.7, 29.99, 30, 31):
        length = int(seconds * 16_000)
        grown = log_mel.extend(frames, 29 * 16_000, audio[:length])
        torch.testing.assert_close(grown, log_mel.frames(audio[:length]), atol=1e-4, rtol=0)


def test_states_keep_what_was_written_before() -> None:
    states, whole = GrowingStates(), torch.randn(2, 900, 4)
    for start, end in ((0, 100), (60, 300), (290, 700), (100, 900)):
        keys, values = states.write(0, start, whole[:, start:end], -whole[:, start:end])
        assert torch.equal(keys, whole[:, :end])
        assert torch.equal(values, -whole[:, :end])


def test_the_longest_unused_context_makes_room() -> None:
    contexts = SegmentContexts(max_contexts=2)
    first = contexts.of(("call", "1"))
    contexts.of(("call", "2"))
    assert contexts.of(("call", "1")) is first
    contexts.of(("call", "3"))
    assert len(contexts) == 2
    assert contexts.of(("call", "1")) is first
    contexts.release({("call", "1"), ("call", "unknown")})
    assert contexts.of(("call", "1")) is not first


def _interims(engine: WhisperEngine, audio: Samples, segment_id: str, step: int = 8_000) -> list[str]:
    texts, draft = [], ()
    for length in _lengths(audio, step):
        asked = request(audio[:length], is_final=False, segment_id=segment_id, draft=draft)
        result = engine.transcribe(batch(asked))[0]
        draft = result.alternatives[0].tokens if result.alternatives else draft
        texts.append(text(result))
    return texts


@pytest.fixture(scope="module")
def long_audio() -> Samples:
    return np.concatenate([clip(name) for name in CLIP_TEXTS])


def test_less_is_encoded_and_the_text_is_the_same(
    tiny: WhisperEngine, long_audio: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[tuple[int, int]] = []
    encoder = tiny._model.encoder
    extend = encoder.extend

    def counted(mel: torch.Tensor, start: int, states: GrowingStates) -> torch.Tensor:
        found = extend(mel, start, states)
        encoded.append((start, len(found)))
        return found

    monkeypatch.setattr(encoder, "extend", counted)
    texts = _interims(tiny, long_audio, "long")
    look_ahead = tiny._settings.look_ahead_ms // 20
    assert encoded[-1][0] == (len(long_audio) // 8_000 - 1) * 25 - look_ahead + 1
    assert max(count for start, count in encoded if start > look_ahead) <= look_ahead + 25 + 25 + 2
    whole = text(tiny.transcribe(batch(request(long_audio[: len(long_audio) // 8_000 * 8_000], is_final=False)))[0])
    words = texts[-1].split()
    different = sum(a != b for a, b in zip(words, whole.split(), strict=False)) + abs(len(words) - len(whole.split()))
    assert different <= 2


def test_finals_do_not_depend_on_what_was_kept(tiny: WhisperEngine, long_audio: Samples) -> None:
    fresh = tiny.transcribe(batch(request(long_audio, word_details=True)))[0]
    draft = _interims(tiny, long_audio, "kept")
    assert draft
    kept = tiny.transcribe(batch(request(long_audio, word_details=True, segment_id="kept")))[0]
    assert kept == fresh


def test_interims_do_not_depend_on_their_batch(tiny: WhisperEngine, long_audio: Samples) -> None:
    alone = [_interims(tiny, audio, f"alone {n}") for n, audio in enumerate((long_audio, clip("order")))]
    pairs = []
    for length in _lengths(clip("order"), 8_000):
        pair = [
            request(audio[:length], number=n, is_final=False, segment_id=f"together {n}")
            for n, audio in enumerate((long_audio, clip("order")))
        ]
        pairs.append([text(r) for r in tiny.transcribe(batch(*pair))])
    assert [p[1] for p in pairs] == alone[1]
    assert [p[0] for p in pairs] == alone[0][: len(pairs)]


def test_other_audio_under_the_same_name_starts_anew(tiny: WhisperEngine) -> None:
    for name in CLIP_TEXTS:
        asked = request(clip(name), is_final=False, segment_id="reused")
        assert text(tiny.transcribe(batch(asked))[0]) == CLIP_TEXTS[name]
    shorter = request(clip("address")[:30_000], is_final=False, segment_id="reused")
    fresh = request(clip("address")[:30_000], is_final=False)
    assert text(tiny.transcribe(batch(shorter))[0]) == text(tiny.transcribe(batch(fresh))[0])


def test_released_utterances_leave_nothing(tiny: WhisperEngine) -> None:
    tiny.transcribe(batch(request(clip("order"), is_final=False, segment_id="gone")))
    before = len(tiny._contexts)
    tiny.release({("call", "gone")})
    assert len(tiny._contexts) == before - 1


def test_a_look_ahead_of_a_window_encodes_everything_each_time(long_audio: Samples) -> None:
    engine = WhisperEngine(WhisperSettings(model="tiny.en", device="cpu", look_ahead_ms=30_000))
    _interims(engine, long_audio, "all")
    assert engine._contexts.of(("call", "all")).settled == 0
