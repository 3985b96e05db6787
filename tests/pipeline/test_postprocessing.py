from pipeline.postprocessing import clean, present
from pipeline.types import Hypothesis, Word


def hypothesis(transcript, words=()):
    return Hypothesis(transcript=transcript, words=tuple(words), confidence=0.5, language_code="en")


def word(text, start_ms, end_ms):
    return Word(text=text, start_ms=start_ms, end_ms=end_ms, confidence=0.5)


def test_white_space_collapses():
    assert clean("  Hello \n there. ") == "Hello there."


def test_descriptions_of_sound_are_no_words():
    assert clean("[MUSIC]") == clean("(gentle music playing)") == clean("♪♪") == clean("*coughs*") == ""
    assert clean("So [laughter] that is fine. (bell") == "So that is fine."
    assert clean("Dial *55 or *66, then press * or #.") == "Dial *55 or *66, then press * or #."


def test_words_of_a_description_go_with_it():
    words = [word(" So", 0, 100), word(" [soft", 100, 200), word(" music]", 200, 300), word(" hello.", 300, 400)]
    shown = present(
        [hypothesis(" So [soft music] hello.", words), hypothesis("(noise)", [word("(noise)", 0, 9)])], 0, 500
    )
    assert [h.transcript for h in shown] == ["So hello."]
    assert [w.text for w in shown[0].words] == ["So", "hello."]


def test_empty_and_repeated_alternatives_are_left_out():
    shown = present([hypothesis(" a b"), hypothesis("a b "), hypothesis("  "), hypothesis("a c")], 0, 1_000)
    assert [h.transcript for h in shown] == ["a b", "a c"]


def test_word_times_are_call_clock_in_order_and_inside_the_segment():
    words = [word(" one", 0, 200), word(" two", 150, 400), word(" three", 120, 9_000)]
    moved = present([hypothesis("one two three", words)], 5_000, 6_000)[0].words
    assert [(w.text, w.start_ms, w.end_ms) for w in moved] == [
        ("one", 5_000, 5_200),
        ("two", 5_150, 5_400),
        ("three", 5_150, 6_000),
    ]


def test_no_words_reach_a_log():
    assert "secret" not in repr(hypothesis("secret", [word("secret", 0, 1)]))
