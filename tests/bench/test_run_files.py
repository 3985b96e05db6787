"""The files of a step, read as scoring tools read them."""

import json
from pathlib import Path

import pytest

from clients.bench.recordings import read_calls, read_recordings, write_calls
from clients.bench.run_files import RunRecord, write_run
from clients.replay.manifest import ManifestError
from tests.bench.calls import TEXT, live_trace
from tests.clients.traces import entry, final, interim, trace

USAGE = {
    "wall_s": 9.0,
    "server_cpu_s": 2.0,
    "client_cpu_s": 0.1,
    "machine_busy_cpu_s": 3.0,
    "server_rss_mb": 400.0,
}


def hypotheses(folder: Path) -> dict[int, list[tuple[float, str]]]:
    """By stream: what a reader sees, as finals add up and an interim is the whole unfinished text."""
    seen: dict[int, list[tuple[float, str]]] = {}
    finals: dict[int, list[str]] = {}
    unfinished: dict[int, str] = {}
    for line in (folder / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        stream = event["stream"]
        if event["kind"] == "final":
            finals.setdefault(stream, []).append(event["text"])
        else:
            unfinished[stream] = event["text"]
        text = " ".join(filter(None, [*finals.get(stream, []), unfinished.get(stream, "")]))
        seen.setdefault(stream, []).append((event["t_wall_s"], text))
    return seen


def write(folder, *traces):
    write_run(folder, RunRecord(label="talkpath", calls_dir=folder, traces=traces, usage=USAGE))


def test_run_json_names_streams_and_costs(tmp_path):
    write(tmp_path, live_trace(), live_trace(index=1))
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["n"] == 2
    assert run["calls_dir"] == str(tmp_path)
    assert {name: run[name] for name in USAGE} == USAGE
    assert run["streams"][1] == {
        "stream": 1,
        "call": "a.wav",
        "audio_s": 5.0,
        "error": None,
        "drained": True,
        "max_send_late_s": 0.0,
    }


def test_a_final_takes_its_interim_with_it(tmp_path):
    write(tmp_path, live_trace())
    # Between a final and its interim a reader would see the words twice: both come at the same time.
    doubled = f"{TEXT} Hello their how"
    assert hypotheses(tmp_path)[0] == [(1.1, "Hello"), (1.8, "Hello their how"), (2.6, doubled), (2.6, TEXT)]


def test_unfinished_text_of_all_channels_stays(tmp_path):
    write(
        tmp_path,
        trace(
            [
                (1.0, interim("one", end_ms=900, segment="a")),
                (1.2, interim("two", end_ms=900, segment="b", tag=2)),
                (2.0, final("One.", end_ms=900, segment="a")),
                (3.0, final("Two.", end_ms=900, segment="b", tag=2)),
            ]
        ),
    )
    seen = hypotheses(tmp_path)[0]
    assert seen[1] == (1.2, "one two")
    assert seen[3] == (2.0, "One. two")
    assert seen[-1] == (3.0, "One. Two.")


def test_calls_json_comes_back_as_it_was_written(tmp_path):
    spoken = entry({1: "hello you"}, [(1, 500, 900), (1, 1500, 2000)])
    write_calls(tmp_path, [spoken])
    [read] = read_calls(tmp_path)
    assert read.name == spoken.name
    assert [(u.start_ms, u.end_ms) for u in read.utterances] == [(500, 900), (1500, 2000)]


def test_recordings_without_utterances_are_one(tmp_path):
    write_calls(tmp_path, [entry({1: "hello"})])
    [read] = read_recordings(tmp_path)
    assert read.texts == {1: "hello"}


@pytest.mark.parametrize("content", [None, "{}", "[]", '{"calls": [{"id": 1}]}', "not json"])
def test_what_is_no_folder_of_calls_is_named(tmp_path, content):
    if content is not None:
        (tmp_path / "calls.json").write_text(content)
    with pytest.raises(ManifestError, match="calls.json"):
        read_recordings(tmp_path)
