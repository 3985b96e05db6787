"""A step as files: `run.json` and `events.jsonl` as scoring tools read them, and all events as they came.

In `events.jsonl` finals add up and an interim is the whole unfinished text of its stream, all channels together; so a
final is followed by what is still unfinished, at the same time.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients.bench.figures import is_drained, send_late_s
from clients.replay.events_file import write_events
from clients.replay.pacing import MS_PER_S
from clients.replay.player import CallTrace
from clients.types import Result

RUN_FILE = "run.json"
EVENTS_FILE = "events.jsonl"
CALL_EVENTS_FILE = "call_events.jsonl"
_TIME_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A step to be written."""

    label: str
    calls_dir: Path
    """Holds calls.json with the words of the recordings."""
    traces: Sequence[CallTrace] = field(repr=False)
    usage: Mapping[str, float | None]


def write_run(folder: Path, record: RunRecord) -> None:
    """Writes a step's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUN_FILE).write_text(json.dumps(_run(record), indent=1), encoding="utf-8")
    with (folder / EVENTS_FILE).open("w", encoding="utf-8") as file:
        for trace in record.traces:
            for row in text_rows(trace):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    write_events(folder / CALL_EVENTS_FILE, record.traces)


def text_rows(trace: CallTrace) -> Iterator[dict[str, Any]]:
    """The texts of a stream, in the order they came."""
    unfinished: dict[str, str] = {}
    for timed in trace.events:
        if isinstance(result := timed.event, Result):
            if result.is_final:
                unfinished.pop(result.result_id, None)
                yield _row(trace, timed.t_s, "final", result.transcript)
            else:
                unfinished[result.result_id] = result.transcript
            yield _row(trace, timed.t_s, "interim", " ".join(text for text in unfinished.values() if text))


def _row(trace: CallTrace, t_s: float, kind: str, text: str) -> dict[str, Any]:
    return {"t_wall_s": round(t_s, _TIME_DIGITS), "kind": kind, "text": text, "stream": trace.call.index}


def _run(record: RunRecord) -> dict[str, Any]:
    return {
        "label": record.label,
        "n": len(record.traces),
        "calls_dir": str(record.calls_dir.resolve()),
        **record.usage,
        "streams": [
            {
                "stream": trace.call.index,
                "call": trace.call.name,
                "audio_s": trace.sent_ms / MS_PER_S,
                "error": str(trace.error) if trace.error else None,
                "drained": is_drained(trace),
                "max_send_late_s": round(send_late_s(trace), _TIME_DIGITS),
            }
            for trace in record.traces
        ],
    }
