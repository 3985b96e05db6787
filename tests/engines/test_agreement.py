"""Words that interims agree on for long are kept, and only then."""

import numpy as np
import pytest

from pipeline.engines.whisper.agreement import AgreedText
from pipeline.engines.whisper.engine import WhisperEngine
from tests.engines.support import CLIP_TEXTS, batch, clip, request, text

PROMPT = (1, 2)


def test_tokens_settle_when_they_have_stood_for_long_enough() -> None:
    agreed = AgreedText()
    agreed.note(PROMPT, (5, 6), (-0.1, -0.2), 100)
    agreed.note(PROMPT, (5, 7, 8), (-0.1, -0.2, -0.3, -0.4), 200)
    assert agreed.log_probs == (-0.1, -0.2, -0.3)
    assert [agreed.num_settled(PROMPT, heard, 100) for heard in (199, 200, 299, 300)] == [0, 1, 1, 3]


def test_a_token_that_changes_takes_those_behind_it_along() -> None:
    agreed = AgreedText()
    agreed.note(PROMPT, (5, 6, 7), (0.0,) * 3, 100)
    agreed.note(PROMPT, (5, 9, 7), (0.0,) * 3, 200)
    assert agreed.num_settled(PROMPT, 250, 100) == 1


def test_another_language_starts_anew() -> None:
    agreed = AgreedText()
    agreed.note(PROMPT, (5,), (0.0,), 100)
    assert agreed.num_settled((1, 3), 900, 100) == 0
    agreed.note((1, 3), (5,), (0.0,), 900)
    assert agreed.num_settled((1, 3), 950, 100) == 0


def test_settled_words_are_not_decoded_again(tiny: WhisperEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    audio = np.concatenate([clip(name) for name in CLIP_TEXTS])
    settled, whole, draft = [], [], ()
    decode = tiny._attempts._search.decode

    def watched(cross, plans, temperature=0.0):
        settled.append(len(plans[0].settled))
        return decode(cross, plans, temperature)

    monkeypatch.setattr(tiny._attempts._search, "decode", watched)
    for length in range(8_000, len(audio), 8_000):
        result = tiny.transcribe(batch(request(audio[:length], is_final=False, segment_id="settling", draft=draft)))[0]
        draft = result.alternatives[0].tokens if result.alternatives else draft
        whole.append(len(draft))
    assert settled == sorted(settled)
    assert settled[4] == 0
    assert whole[-1] / 2 < settled[-1] < whole[-1]
    assert text(result).split()[:8] == text(tiny.transcribe(batch(request(audio)))[0]).split()[:8]
