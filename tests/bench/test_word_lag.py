"""From the end of a word's audio to the first time it is shown."""

import pytest

from clients.bench.word_lag import Screen, TimedWord, WordLags, call_lags, channel_lags, screens, timed_words
from tests.bench.calls import alone_trace, live_trace
from tests.clients.traces import final, interim, trace


def words(*spoken: tuple[str, float, float]) -> tuple[TimedWord, ...]:
    return tuple(TimedWord(text=text, start_s=start_s, end_s=end_s) for text, start_s, end_s in spoken)


def screen(t_s: float, text: str) -> Screen:
    return Screen(t_s=t_s, words=tuple(text.split()))


def test_words_count_from_the_first_screen_that_has_them():
    lags = call_lags(live_trace(), alone_trace())
    # "there" is first heard as "their": only the final shows it.
    assert lags.lags_s == pytest.approx((1.1 - 0.9, 2.6 - 1.3, 1.8 - 1.6, 2.6 - 1.75, 2.6 - 2.0))
    assert lags.num_never_shown == 0


def test_a_late_server_is_late_for_every_word():
    in_time, late = call_lags(live_trace(), alone_trace()), call_lags(live_trace(delay_s=2.0), alone_trace())
    assert [b - a for a, b in zip(in_time.lags_s, late.lags_s, strict=True)] == pytest.approx([2.0] * 5)


def test_words_that_never_come_are_counted_apart():
    lags = call_lags(live_trace(text="Hello there, how"), alone_trace())
    assert len(lags.lags_s) == 3
    assert lags.num_never_shown == 2


def test_a_word_taken_back_was_shown_all_the_same():
    spoken = words(("yes", 0.0, 0.4))
    assert channel_lags(spoken, [screen(0.5, "yes"), screen(1.0, ""), screen(3.0, "yes")]).lags_s == (
        pytest.approx(0.1),
    )


def test_a_repeated_word_is_not_shown_before_it_is_said():
    spoken = words(("no", 0.0, 0.3), ("no", 2.0, 2.3), ("no", 4.0, 4.3))
    shown = [screen(0.5, "no"), screen(2.6, "no no"), screen(4.4, "no no no")]
    assert channel_lags(spoken, shown).lags_s == pytest.approx((0.2, 0.3, 0.1))


def test_an_early_guess_of_words_to_come_does_not_count():
    spoken = words(("press", 0.0, 0.4), ("one", 5.0, 5.4))
    assert channel_lags(spoken, [screen(0.5, "press one"), screen(5.6, "press one")]).lags_s == pytest.approx(
        (0.1, 0.2)
    )


def test_screens_hold_finals_and_what_is_unfinished_on_their_channel():
    played = trace(
        [
            (1.0, interim("one", end_ms=1000, segment="a")),
            (1.5, interim("elsewhere", end_ms=1000, segment="x", tag=2)),
            (2.0, final("One.", end_ms=1500, segment="a")),
            (3.0, interim("two", end_ms=2500, segment="b")),
        ]
    )
    assert [s.words for s in screens(played, 1)] == [("one",), ("one",), ("one", "two")]
    assert [s.words for s in screens(played, 2)] == [("elsewhere",)]


def test_timed_words_come_without_case_and_punctuation():
    assert timed_words(alone_trace(), 1)[1] == TimedWord(text="there", start_s=1.0, end_s=1.3)
    assert timed_words(alone_trace(), 2) == ()


def test_lags_add_up():
    assert WordLags(lags_s=(1.0,)) + WordLags(lags_s=(2.0,), num_never_shown=3) == WordLags(
        lags_s=(1.0, 2.0), num_never_shown=3
    )
