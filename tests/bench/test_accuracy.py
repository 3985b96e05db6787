"""Word errors of clips."""

import numpy as np
import pytest

from pipeline.benchmarks.schedule import Clip
from server.bench.accuracy import interim_difference_rate, word_error_rate


def clip(text: str) -> Clip:
    return Clip(name="clip", samples=np.zeros(16, dtype=np.float32), text=text)


def test_errors_are_pooled_over_clips():
    clips = [clip("Press one, please."), clip("to hear it again now")]
    assert word_error_rate(clips, {0: "press 1 please", 1: "to hear again then"}) == pytest.approx(2 / 8)


def test_no_text_at_all_is_all_wrong():
    assert word_error_rate([clip("hello there")], {0: ""}) == 1


def test_words_that_an_interim_could_not_know_do_not_count():
    finals = {0: "the new address is twelve garden street", 1: "thank you"}
    assert interim_difference_rate(finals, {0: "The new address is"}) == 0
    assert interim_difference_rate(finals, {0: "The knew address is"}) == pytest.approx(1 / 7)
    assert interim_difference_rate(finals, {1: "thank you both"}) == pytest.approx(1 / 2)
