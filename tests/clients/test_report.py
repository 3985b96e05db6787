import json
import re
from xml.etree import ElementTree

import pytest

from clients.errors import RecognitionError
from clients.replay.plots import latency_figure, timeline_figure, to_svg, wer_figure
from clients.replay.report import report_html, report_json
from clients.replay.scoring import score_call
from clients.replay.summary import Summary, distribution, figure_rows, figures, summarize, worst_scores
from tests.clients.traces import entry, final, interim, trace


def spoken(text: str, *, index: int = 0, reference: str = "hello world", speed: float = 1.0, name: str = "a.wav"):
    events = [
        (1.0, interim("hello", end_ms=900, start_ms=200)),
        (1.5, interim("hello word", end_ms=1_400, start_ms=200)),
        (2.6, final(text, end_ms=2_500, start_ms=200, latency_ms=550)),
    ]
    known = entry({1: reference}, [(1, 450, 2_000)])
    return trace(events, index=index, reference=known, speed=speed, name=name)


def summary_of(*traces, **settings: object) -> Summary:
    return summarize(list(traces), 10.0, {"server": "localhost:1", "model": "tiny.en", **settings})


def test_figures_of_a_run():
    failed = trace([], index=2, audio_ms=1_000, acknowledged_ms=0, error=RecognitionError("UNAVAILABLE", "gone"))
    values = figures(summary_of(spoken("hello world"), spoken("hello word", index=1), failed))
    assert values["wer"] == pytest.approx(1 / 4)
    assert (values["calls"], values["calls_failed"], values["calls_without_final"]) == (3, 1, 1)
    assert values["errors_by_status"] == {"UNAVAILABLE": 1}
    assert values["audio_lost_ms"] == 1_000
    assert values["times_real_time"] == pytest.approx(1.1)
    assert values["first_interim_latency_s"] == pytest.approx({"count": 2, "median": 0.5, "p95": 0.5, "max": 0.5})
    assert values["finalization_latency_s"]["median"] == pytest.approx(0.6)
    assert values["interims_per_speech_s"] == pytest.approx(4 / 3.1)
    assert values["flicker"] == pytest.approx(1 / 4)  # "word" became "world" in one of two calls
    assert values["stable_violations"] == 0


def test_distribution():
    spread = distribution([float(value) for value in range(101)])
    assert spread is not None
    assert (spread.count, spread.median, spread.p95, spread.maximum) == (101, 50.0, 95.0, 100.0)
    assert distribution([]) is None


def test_the_worst_come_first_and_perfect_ones_not_at_all():
    summary = summary_of(
        spoken("hello world"), spoken("hello", index=1, name="half.wav"), spoken("no", index=2, name="all.wav")
    )
    assert [score.name for score in worst_scores(summary, 5)] == ["all.wav", "half.wav"]
    assert [score.name for score in worst_scores(summary, 1)] == ["all.wav"]


def test_unpaced_runs_say_why_there_are_no_latencies():
    summary = summary_of(spoken("hello world", speed=0))
    rows = dict(figure_rows(summary))["Latency"]
    assert [label for label, _ in rows] == ["latencies"]
    assert "not measured" in rows[0][1]
    assert figures(summary)["first_interim_latency_s"] is None
    assert "not measured" in report_json(summary)["latency_note"]
    assert report_html(summary).count("<svg") == 2  # timeline and WER, no latencies


def test_the_json_report_holds_figures_and_no_words():
    content = report_json(summary_of(spoken("hello planet"), concurrency=4))
    text = json.dumps(content)
    assert content["settings"]["concurrency"] == 4
    assert content["calls"][0]["scores"] == [{"channel_tag": 1, "wer": 0.5, "errors": 1, "words": 2}]
    assert "planet" not in text


def test_the_page_escapes_what_it_shows():
    page = report_html(summary_of(spoken("<b>x</b>", name="<i>.wav"), note="<script>"))
    assert not re.search(r"<(b|i|script)>x?", page.partition("</head>")[2].replace("<b>", "", 4))
    assert "&lt;i&gt;.wav" in page
    assert "&lt;script&gt;" in page


def test_a_run_without_references_or_results_is_still_reported():
    page = report_html(summary_of(trace([])))
    assert "No recording has a reference." in page
    assert page.count("<svg") == 1


@pytest.mark.parametrize("num_calls", [1, 40, 200])
def test_pictures_are_well_formed_at_any_size(num_calls):
    scores = [
        score
        for index in range(num_calls)
        for score in score_call(spoken("hello" if index % 3 else "hello world", name=f"{index}.wav"))
    ]
    series = {"first": [0.1 * index for index in range(num_calls)], "none": []}
    for figure in (wer_figure(scores), latency_figure(series), timeline_figure(spoken("hello world"))):
        root = ElementTree.fromstring(to_svg(figure))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(wer_figure(scores).axes[0].patches) == min(num_calls, 120)


def test_the_timeline_draws_each_interim_and_final_where_it_came():
    axes = timeline_figure(spoken("hello world")).axes[0]
    drawn = {line.get_marker(): list(line.get_xdata()) for line in axes.lines if len(line.get_xdata())}
    assert drawn == {"|": [1.0, 1.5], "D": [2.6]}


def test_the_same_figure_gives_the_same_bytes():
    assert to_svg(timeline_figure(spoken("a"))) == to_svg(timeline_figure(spoken("a")))
