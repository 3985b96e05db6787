from hypothesis import given
from hypothesis import strategies as st

from pipeline.stabilization import Stabilizer


def run(*texts, interval_ms=500, stable_after_ms=1_000):
    stabilizer = Stabilizer(stable_after_ms)
    return [stabilizer.update(text, (i + 1) * interval_ms) for i, text in enumerate(texts)]


def stable(update):
    return update.transcript[: update.stable_length]


def test_words_settle_after_the_stated_time():
    found = run("my", "my name", "my name is", "my name is Ann", "my name is Ann Bell")
    assert [stable(u) for u in found] == ["", "", "my", "my name", "my name is"]


def test_a_changed_word_starts_anew():
    found = run("I want two", "I want to", "I want to pay", "I want to pay now", "I want to pay now please")
    assert [stable(u) for u in found] == ["", "", "I want", "I want to", "I want to pay"]


def test_what_contradicts_settled_text_is_not_shown():
    found = run("one two", "one two", "one two", "won two", "one two three")
    assert stable(found[2]) == "one two"
    assert found[3] is None
    assert found[4].transcript.startswith("one two")


def test_three_hypotheses_are_needed_however_old_a_word_is():
    found = run("yes", "yes", interval_ms=5_000)
    assert [u.stable_length for u in found] == [0, 0]


def test_stability_is_the_share_that_was_there_before():
    found = run("a b", "a b c d", "a b c d")
    assert found[0].stability == 0
    assert 0 < found[1].stability < found[2].stability <= 0.95


def test_text_without_spaces_settles_by_character():
    found = run("今日は", "今日はい", "今日はいい天気")
    assert stable(found[2]) == "今日は"


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=5).map(" ".join), max_size=20))
def test_settled_text_only_grows(texts):
    settled = ""
    for update in run(*texts):
        if update is not None:
            assert stable(update).startswith(settled)
            assert 0 <= update.stability <= 1
            settled = stable(update)
