"""Everything received, one JSON line an event."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clients.replay.player import CallTrace, TimedEvent
from clients.types import Ack, CallEvent, CallStarted, Notice, Result, Scene, SpeechActivity, Turn


def write_events(path: Path, traces: Iterable[CallTrace]) -> None:
    """Writes all events, call after call, each call's in the order they came; an error is its call's last line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for trace in traces:
            for row in _rows(trace):
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _rows(trace: CallTrace) -> Iterable[dict[str, Any]]:
    for timed in trace.events:
        yield event_row(trace, timed)
    if trace.error:
        yield _row(trace, trace.wall_s, "error", {"status": trace.error.status, "message": trace.error.message})


def event_row(trace: CallTrace, timed: TimedEvent) -> dict[str, Any]:
    """One event as JSON; `t_wall_s`, `kind`, `text` and `stream` are what scoring tools read."""
    kind, fields = _describe(timed.event)
    if tag := fields.get("channel_tag"):
        fields = {**fields, "role": trace.call.role_name(tag)}
    return _row(trace, timed.t_s, kind, fields)


def _row(trace: CallTrace, t_s: float, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"t_wall_s": round(t_s, 4), "stream": trace.call.index, "call": trace.call.name, "kind": kind, **fields}


def _describe(event: CallEvent) -> tuple[str, dict[str, Any]]:
    match event:
        case Result():
            return ("final" if event.is_final else "interim"), _result_fields(event)
        case SpeechActivity():
            kind = f"speech_{event.kind.value.lower()}"
            return kind, {"channel_tag": event.channel_tag, "offset_ms": event.offset_ms}
        case Ack():
            return "ack", {"offset_ms": event.offset_ms}
        case Notice():
            code = event.code.value
            return "notice", {"code": code, "message": event.message, "channel_tag": event.channel_tag}
        case Scene():
            return "scene", _scene_fields(event)
        case Turn():
            return "turn", _turn_fields(event)
        case CallStarted():
            return "call_started", {"call_id": event.call_id}


def _scene_fields(scene: Scene) -> dict[str, Any]:
    return {
        "scene": scene.kind.value,
        "channel_tag": scene.channel_tag,
        "offset_ms": scene.offset_ms,
        "duration_ms": scene.duration_ms,
        "is_over": scene.is_over,
        "digit": scene.digit,
    }


def _turn_fields(turn: Turn) -> dict[str, Any]:
    return {
        "turn": turn.kind.value,
        "text": turn.transcript,
        "channel_tag": turn.channel_tag,
        "offset_ms": turn.offset_ms,
        "result_id": turn.result_id,
    }


def _result_fields(result: Result) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "text": result.transcript,
        "channel_tag": result.channel_tag,
        "result_id": result.result_id,
        "start_ms": result.start_ms,
        "end_ms": result.end_ms,
        "language_code": result.language_code,
    }
    if result.is_final:
        reason = result.end_reason.value if result.end_reason else None
        return {**fields, "end_reason": reason, "latency_ms": result.latency_ms}
    return {**fields, "stability": round(result.stability, 3), "stable_length": result.stable_length}
