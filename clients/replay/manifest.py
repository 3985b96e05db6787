"""Manifests: JSON lines that say which recordings there are and what is spoken in them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients.types import ChannelRole

MS_PER_S = 1_000
EXACT_TEXT_KINDS = ("verbatim", "no speech expected")
_ROLES = {
    "agent": ChannelRole.AGENT,
    "customer": ChannelRole.CUSTOMER,
    "caller": ChannelRole.CUSTOMER,
    "ivr": ChannelRole.IVR,
    "unknown": ChannelRole.UNKNOWN,
}


class ManifestError(Exception):
    """A manifest, or a role in it, that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Something said, with its time in the recording."""

    channel_tag: int
    start_ms: int
    end_ms: int
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One recording and its reference."""

    path: Path
    name: str
    """The path as the manifest writes it."""
    kind: str = ""
    language_code: str = ""
    duration_s: float = 0.0
    texts: Mapping[int, str] = field(default_factory=dict, repr=False)
    """Exact words by channel_tag; empty when there is no exact reference."""
    is_mixed: bool = True
    """One text for the whole recording, however many channels its file has: they are mixed before they are sent."""
    roles: Mapping[int, ChannelRole] = field(default_factory=dict)
    utterances: tuple[Utterance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which entries of a manifest to play."""

    kinds: tuple[str, ...] = ()
    """Empty: every kind, as far as there are words in it."""
    min_duration_s: float = 0.0
    language: str = ""
    """"en" also takes "en-US". Empty: every language."""
    name_part: str = ""
    """Part of the name."""
    limit: int | None = None


def parse_role(name: str) -> ChannelRole:
    """The role of that name, in any case.

    Raises:
        ManifestError: There is no such role.
    """
    role = _ROLES.get(name.strip().lower())
    if role is None:
        raise ManifestError(f"role {name!r} is not known; use one of {', '.join(_ROLES)}")
    return role


def read_manifest(path: Path) -> tuple[ManifestEntry, ...]:
    """Reads a manifest; paths in it are relative to its folder.

    Raises:
        ManifestError: It is missing, or a line is no manifest entry.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}; name a JSON lines file") from error
    entries = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            entries.append(_entry_of_line(path, number, line))
    return tuple(entries)


def _entry_of_line(path: Path, number: int, line: str) -> ManifestEntry:
    try:
        return _entry(json.loads(line), path.parent)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ManifestError(
            f"{path}, line {number}: {type(error).__name__} {error}; a line is one JSON object"
        ) from error


def _entry(row: Mapping[str, Any], folder: Path) -> ManifestEntry:
    channels: list[Mapping[str, Any]] = row["channels"] if isinstance(row.get("channels"), list) else []
    texts = {int(c["channel_tag"]): str(c["text"]) for c in channels if c.get("text") is not None}
    is_exact = row.get("text_kind", EXACT_TEXT_KINDS[0]) in EXACT_TEXT_KINDS
    if not channels and row.get("text") is not None and is_exact:
        texts = {1: str(row["text"])}
    return ManifestEntry(
        path=folder / row["path"],
        name=row["path"],
        kind=row.get("kind") or "",
        language_code=row.get("language") or "",
        duration_s=float(row.get("duration_s") or 0.0),
        texts=texts,
        is_mixed=not channels,
        roles={int(c["channel_tag"]): parse_role(c["role"]) for c in channels if c.get("role")},
        utterances=tuple(_utterance(u) for u in row.get("utterances") or ()),
    )


def _utterance(row: Mapping[str, Any]) -> Utterance:
    return Utterance(
        channel_tag=int(row.get("channel_tag", 1)),
        start_ms=round(row["start_s"] * MS_PER_S),
        end_ms=round(row["end_s"] * MS_PER_S),
        text=row["text"],
    )


def select(entries: tuple[ManifestEntry, ...], selection: Selection) -> tuple[ManifestEntry, ...]:
    """The entries with an exact reference that the selection asks for, in the manifest's order."""
    chosen = tuple(entry for entry in entries if _is_selected(entry, selection))
    return chosen[: selection.limit]


def _is_selected(entry: ManifestEntry, selection: Selection) -> bool:
    has_words = any(text.strip() for text in entry.texts.values())
    if not entry.texts or not (has_words or selection.kinds):
        return False
    language = entry.language_code.lower().partition("-")[0]
    return (
        (not selection.kinds or entry.kind in selection.kinds)
        and entry.duration_s >= selection.min_duration_s
        and (not selection.language or selection.language.lower() in (language, entry.language_code.lower()))
        and selection.name_part in entry.name
    )
