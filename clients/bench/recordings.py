"""The calls of a benchmark: a folder with calls.json, or a manifest."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from clients.replay.manifest import MS_PER_S, ManifestEntry, ManifestError, Selection, Utterance, read_manifest, select

CALLS_FILE = "calls.json"
_LANGUAGE = "en"
_MONO_TAG = 1


def read_recordings(source: Path) -> tuple[ManifestEntry, ...]:
    """English recordings with exact words: of a folder with calls.json, or of a manifest (JSON lines).

    Raises:
        ManifestError: There are none, or they cannot be read.
    """
    entries = read_calls(source) if source.is_dir() else read_manifest(source)
    chosen = select(entries, Selection(language=_LANGUAGE))
    if not chosen:
        raise ManifestError(f"{source}: no English recording with exact words in it; name another one")
    return chosen


def read_calls(folder: Path) -> tuple[ManifestEntry, ...]:
    """Reads calls.json: one channel a call, each utterance with its start and end in seconds.

    Raises:
        ManifestError: It is missing or not of this shape.
    """
    path = folder / CALLS_FILE
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["calls"]
        return tuple(_entry(folder, row) for row in rows)
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}; name a folder with {CALLS_FILE}, or a manifest") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ManifestError(f"{path}: {type(error).__name__} {error}; it should list calls and utterances") from error


def _entry(folder: Path, row: Mapping[str, Any]) -> ManifestEntry:
    utterances = tuple(
        Utterance(
            channel_tag=_MONO_TAG,
            start_ms=round(said["start"] * MS_PER_S),
            end_ms=round(said["end"] * MS_PER_S),
            text=said["text"],
        )
        for said in row["utterances"]
    )
    return ManifestEntry(
        path=folder / row["wav"],
        name=row["id"],
        kind="bench-call",
        language_code=_LANGUAGE,
        duration_s=float(row["duration_s"]),
        texts={_MONO_TAG: " ".join(said.text for said in utterances)},
        utterances=utterances,
    )


def write_calls(folder: Path, entries: Sequence[ManifestEntry]) -> None:
    """Writes calls.json, so that tools that score runs find the words of recordings from a manifest."""
    calls = [
        {
            "id": entry.name,
            "wav": str(entry.path.resolve()),
            "duration_s": entry.duration_s,
            "utterances": _utterance_rows(entry),
        }
        for entry in entries
    ]
    (folder / CALLS_FILE).write_text(json.dumps({"calls": calls}, indent=1), encoding="utf-8")


def _utterance_rows(entry: ManifestEntry) -> list[dict[str, Any]]:
    if not entry.utterances:
        return [{"start": 0.0, "end": entry.duration_s, "text": text} for text in entry.texts.values()]
    return [
        {"start": said.start_ms / MS_PER_S, "end": said.end_ms / MS_PER_S, "text": said.text}
        for said in entry.utterances
    ]
