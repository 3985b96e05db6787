import pytest

from clients.replay.measures import measure, segments_of, sent_at_s, stable_violations, taken_back
from clients.replay.player import TimedEvent
from clients.types import ActivityKind, EndReason, SpeechActivity
from tests.clients.traces import entry, final, interim, trace


def history(*results):
    (segment,) = segments_of(TimedEvent(t_s=float(index), event=result) for index, result in enumerate(results))
    return segment


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["one", "one two", "one two three"], 0),
        (["one too", "one two"], 1),
        (["a b c", "x b c"], 3),
        (["Hello", "hello,", "Hello, there."], 0),
        (["one two", ""], 2),
        (["one", "on", "one"], 2),
    ],
)
def test_flicker_counts_words_that_the_next_result_no_longer_had(texts, expected):
    results = [interim(text, end_ms=100 * index) for index, text in enumerate(texts[:-1])]
    assert taken_back(history(*results, final(texts[-1], end_ms=900))) == expected


def test_stable_text_may_be_continued_but_not_changed():
    kept = history(interim("one two", end_ms=1, stable=3), interim("one too", end_ms=2), final("one more", end_ms=3))
    assert stable_violations(kept) == 0
    changed = history(interim("one two", end_ms=1, stable=3), interim("one", end_ms=2), final("won", end_ms=3))
    assert stable_violations(changed) == 1


def test_stable_text_that_changes_and_comes_back_is_a_violation():
    segment = history(interim("one", end_ms=1, stable=3), interim("two", end_ms=2), final("one", end_ms=3))
    assert stable_violations(segment) == 1


def test_a_final_without_words_breaks_stable_text():
    assert stable_violations(history(interim("one", end_ms=1, stable=3), final("", end_ms=3))) == 1


def test_latencies_count_from_the_reference_utterances():
    events = [
        (1.75, interim("hel", start_ms=700, end_ms=1500)),
        (2.25, interim("hello", start_ms=700, end_ms=2000)),
        (2.9, final("hello", start_ms=700, end_ms=2700, latency_ms=650)),
    ]
    figures = measure(trace(events, reference=entry({1: "hello"}, [(1, 1020, 2200)])))
    # The sample at 1020 ms went out in the chunk that ends at 1100 ms.
    assert figures.first_interim_s == pytest.approx((0.65,))
    assert figures.finalization_s == pytest.approx((0.7,))
    assert figures.server_latency_s == (0.65,)
    assert figures.interim_gap_s == pytest.approx((0.5, 0.65))
    assert (figures.num_interims, figures.num_finals, figures.num_final_words) == (2, 1, 1)
    assert figures.speech_s == pytest.approx(1.18)


def test_without_utterances_the_servers_activity_events_say_where_speech_was():
    begin = SpeechActivity(kind=ActivityKind.BEGIN, channel_tag=1, offset_ms=900)
    elsewhere = SpeechActivity(kind=ActivityKind.BEGIN, channel_tag=2, offset_ms=800)
    end = SpeechActivity(kind=ActivityKind.END, channel_tag=1, offset_ms=2000)
    events = [
        (0.9, elsewhere),
        (1.1, begin),
        (1.5, interim("hel", start_ms=700, end_ms=1400)),
        (2.6, end),
        (2.7, final("hello", start_ms=700, end_ms=2500)),
    ]
    figures = measure(trace(events))
    assert figures.first_interim_s == pytest.approx((0.5,))
    assert figures.finalization_s == pytest.approx((0.7,))


def test_an_utterance_of_the_other_channel_says_nothing():
    events = [(1.5, interim("a", end_ms=1400)), (2.7, final("a", end_ms=2500))]
    figures = measure(trace(events, reference=entry({1: "a"}, [(2, 500, 2000)])))
    assert figures.first_interim_s == figures.finalization_s == ()
    assert figures.speech_s == pytest.approx(2.5)


def test_a_cut_in_mid_speech_is_no_end_of_speech():
    cut = final("a", end_ms=2000, reason=EndReason.MAX_LENGTH)
    rest = final("b", start_ms=2000, end_ms=4500, segment="s2")
    figures = measure(trace([(2.5, cut), (4.9, rest)], reference=entry({1: "a b"}, [(1, 100, 4000)])))
    assert figures.finalization_s == pytest.approx((0.9,))


def test_an_utterance_that_began_in_an_earlier_segment_does_not_start_the_later_one():
    events = [
        (2.5, final("a", end_ms=2000, reason=EndReason.MAX_LENGTH)),
        (2.9, interim("b", start_ms=2000, end_ms=2600, segment="s2")),
    ]
    figures = measure(trace(events, reference=entry({1: "a b"}, [(1, 100, 4000)])))
    assert figures.first_interim_s == ()


def test_faster_than_real_time_finalization_counts_from_the_faster_clock():
    events = [(1.3, final("a", end_ms=2500))]
    figures = measure(trace(events, speed=2.0, reference=entry({1: "a"}, [(1, 500, 2000)])))
    assert figures.finalization_s == pytest.approx((0.3,))


def test_unpaced_calls_have_no_latencies():
    events = [(0.1, interim("a", end_ms=1000)), (0.2, final("a", end_ms=2500, latency_ms=40))]
    figures = measure(trace(events, speed=0, reference=entry({1: "a"}, [(1, 500, 2000)])))
    assert figures.first_interim_s == figures.finalization_s == ()
    assert figures.server_latency_s == figures.interim_gap_s == ()
    assert (figures.num_interims, figures.num_finals) == (1, 1)


def test_audio_not_acknowledged_is_lost():
    assert measure(trace([], audio_ms=5_000, acknowledged_ms=4_200)).lost_ms == 800
    assert measure(trace([], audio_ms=5_000, acknowledged_ms=5_010)).lost_ms == 0


def test_when_a_sample_was_sent():
    played = trace([], audio_ms=300)
    assert [sent_at_s(played, offset_ms) for offset_ms in (0, 99, 100, 299, 300)] == [0.1, 0.1, 0.2, 0.3, None]
