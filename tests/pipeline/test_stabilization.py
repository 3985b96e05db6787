from hypothesis import given
from hypothesis import strategies as st

from pipeline.stabilization import Stabilizer


def run(*texts, interval_ms=500, stable_after_ms=1_000, unsure=()):
    stabilizer = Stabilizer(stable_after_ms)
    found = []
    for index, text in enumerate(texts):
        certainties = [0.5 if word in unsure else 0.99 for word in text.split(" ")]
        found.append(stabilizer.update(text, (index + 1) * interval_ms, certainties))
    return found


def stable(update):
    return update.transcript[: update.stable_length]


def test_words_settle_after_the_stated_time():
    found = run("my", "my name", "my name is", "my name is Ann", "my name is Ann Bell")
    assert [stable(u) for u in found] == ["", "", "my", "my name", "my name is"]


def test_a_changed_word_starts_anew():
    found = run("I want two", "I want to", "I want to pay", "I want to pay now", "I want to pay now please")
    assert [stable(u) for u in found] == ["", "", "I want", "I want to", "I want to pay"]


def test_what_contradicts_settled_text_is_shown_from_there_on():
    found = run("one two", "one two", "one two", "won two three", "One, two three four", "five six seven")
    assert stable(found[2]) == "one two"
    assert [u.transcript for u in found[3:]] == ["one two three", "one two three four", "one two seven"]


def test_other_words_for_the_settled_ones_are_not_said_twice():
    found = run(*["your data set is"] * 3, "your dataset is large", "your dataset is large now")
    assert [u.transcript for u in found[3:]] == ["your data set is large", "your data set is large now"]


def test_a_word_that_the_engine_is_unsure_of_does_not_settle():
    found = run(*["press one to go"] * 5, unsure=["one"])
    assert stable(found[-1]) == "press"


def test_nothing_settles_without_certainties():
    stabilizer = Stabilizer(1_000)
    assert [stabilizer.update("今日は いい", ms).stable_length for ms in (500, 1_000, 2_000, 3_000)] == [0, 0, 0, 0]


def test_three_hypotheses_are_needed_however_old_a_word_is():
    found = run("yes", "yes", interval_ms=5_000)
    assert [u.stable_length for u in found] == [0, 0]


def test_stability_is_the_share_that_was_there_before():
    found = run("a b", "a b c d", "a b c d")
    assert found[0].stability == 0
    assert 0 < found[1].stability < found[2].stability <= 0.95


@given(st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=5).map(" ".join), max_size=20))
def test_settled_text_only_grows(texts):
    settled = ""
    for update in run(*texts):
        assert stable(update).startswith(settled)
        assert update.transcript.startswith(settled)
        assert 0 <= update.stability <= 1
        settled = stable(update)
