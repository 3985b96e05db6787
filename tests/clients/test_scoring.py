import pytest

from clients.replay.scoring import compare, normalize, pooled_wer, score_call, transcript_of
from tests.clients.traces import entry, final, interim, trace


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en-US", "Twenty-one dollars!", "$21"),
        ("en", "Press #, then *.", "press pound then star"),
        ("en", "I'm here; it's COLOUR.", "i am here it is color"),
        ("", "It's four.", "it is 4"),
        ("es-MX", "¿Qué pasó mañana?", "que paso manana"),
        ("fr-CA", "Déjà vu.", "deja vu"),
        ("ja-JP", "こんにちは。", "こ ん に ち は"),
    ],
)
def test_spelling_does_not_count(language, one, other):
    assert normalize(one, language) == normalize(other, language) != ""


def test_different_words_stay_different():
    assert normalize("fifteen", "en") != normalize("fifty", "en")
    assert normalize("cat", "es") != normalize("gato", "es")


@pytest.mark.parametrize(
    ("reference", "hypothesis", "expected"),
    [
        ("a b c", "a b c", [("equal", "a b c", "a b c")]),
        ("a b c", "a x c", [("equal", "a", "a"), ("substitute", "b", "x"), ("equal", "c", "c")]),
        ("a b", "a", [("equal", "a", "a"), ("delete", "b", "")]),
        ("a", "a b", [("equal", "a", "a"), ("insert", "", "b")]),
        ("a b", "", [("delete", "a b", "")]),
        ("", "a b", [("insert", "", "a b")]),
        ("", "", []),
    ],
)
def test_edits(reference, hypothesis, expected):
    assert [(e.kind, e.reference, e.hypothesis) for e in compare(reference, hypothesis)] == expected


def test_only_finals_are_scored_in_the_order_they_came():
    events = [
        (0.5, interim("wrong", end_ms=500)),
        (1.0, final("Hello,", end_ms=1000)),
        (1.5, final("", end_ms=1500, segment="s2")),
        (1.7, final("other party", end_ms=1500, tag=2, segment="t1")),
        (2.0, final(" world.", end_ms=2000, segment="s3")),
    ]
    played = trace(events, reference=entry({1: "hello world", 2: "the other party"}))
    assert transcript_of(played, 1) == "Hello, world."
    first, second = score_call(played)
    assert (first.channel_tag, first.num_words, first.num_errors, first.wer) == (1, 2, 0, 0.0)
    assert (second.channel_tag, second.num_words, second.num_errors) == (2, 3, 1)
    assert pooled_wer([first, second]) == pytest.approx(1 / 5)


def test_words_where_none_were_said_count_as_errors():
    (score,) = score_call(trace([(1.0, final("thank you", end_ms=1000))], reference=entry({1: ""})))
    assert (score.num_words, score.num_errors, score.wer) == (0, 2, 2.0)


def test_a_call_without_finals_has_lost_all_its_words():
    (score,) = score_call(trace([], reference=entry({1: "one two three four is gone"})))
    assert score.wer == 1.0


def test_without_reference_there_is_no_score():
    assert score_call(trace([(1.0, final("hello", end_ms=1000))])) == []
    assert pooled_wer([]) is None
