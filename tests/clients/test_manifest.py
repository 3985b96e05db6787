import json
from pathlib import Path

import pytest

from clients.replay.manifest import ManifestError, Selection, Utterance, parse_role, read_manifest, select
from clients.types import ChannelRole
from tests.support.audio import require_data


def write_manifest(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "manifest.jsonl"
    path.write_text("".join(json.dumps(row) + "\n\n" for row in rows), encoding="utf-8")
    return path


def recording(path: str, **fields: object) -> dict[str, object]:
    defaults = {"kind": "read-speech", "duration_s": 5.0, "language": "en-US", "text": "hello", "text_kind": "verbatim"}
    return {"path": path, **defaults, **fields}


def names(entries) -> list[str]:
    return [entry.name for entry in entries]


def test_paths_are_relative_to_the_manifest(tmp_path):
    (entry,) = read_manifest(write_manifest(tmp_path, recording("a/b.wav", language=None)))
    assert entry.path == tmp_path / "a" / "b.wav"
    assert (entry.texts, entry.is_mixed, entry.language_code) == ({1: "hello"}, True, "")


def test_calls_with_a_text_a_channel(tmp_path):
    row = {
        "path": "call.wav",
        "kind": "sample-call",
        "duration_s": 9.0,
        "language": "en",
        "text": "all of it",
        "channels": [
            {"channel_tag": 1, "role": "agent", "text": "good morning"},
            {"channel_tag": 2, "role": "customer", "text": "hi"},
        ],
        "utterances": [{"channel_tag": 2, "start_s": 1.25, "end_s": 2.0, "text": "hi"}],
    }
    (entry,) = select(read_manifest(write_manifest(tmp_path, row)), Selection())
    assert entry.texts == {1: "good morning", 2: "hi"}
    assert entry.roles == {1: ChannelRole.AGENT, 2: ChannelRole.CUSTOMER}
    assert entry.utterances == (Utterance(channel_tag=2, start_ms=1250, end_ms=2000, text="hi"),)
    assert not entry.is_mixed


def test_only_exact_words_are_references(tmp_path):
    manifest = write_manifest(
        tmp_path,
        recording("exact.wav"),
        recording("near.wav", text_kind="published ASR output (near exact)"),
        recording("none.wav", text=None),
        recording("silent.wav", kind="noise", text="", text_kind="no speech expected"),
    )
    entries = read_manifest(manifest)
    assert names(select(entries, Selection())) == ["exact.wav"]
    assert names(select(entries, Selection(kinds=("noise",)))) == ["silent.wav"]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), ["a.wav", "b.wav", "c.wav", "d.wav"]),
        (Selection(kinds=("ivr-prompt",)), ["b.wav"]),
        (Selection(kinds=("ivr-prompt", "read-speech"), language="en"), ["a.wav", "b.wav", "c.wav"]),
        (Selection(language="es"), ["d.wav"]),
        (Selection(language="es-MX"), ["d.wav"]),
        (Selection(language="es-ES"), []),
        (Selection(min_duration_s=2.0), ["a.wav", "b.wav", "d.wav"]),
        (Selection(name_part="c."), ["c.wav"]),
        (Selection(limit=2), ["a.wav", "b.wav"]),
    ],
)
def test_selection(tmp_path, selection, expected):
    manifest = write_manifest(
        tmp_path,
        recording("a.wav"),
        recording("b.wav", kind="ivr-prompt", duration_s=2.0),
        recording("c.wav", duration_s=1.99, language="en"),
        recording("d.wav", language="es-MX"),
    )
    assert names(select(read_manifest(manifest), selection)) == expected


def test_a_broken_line_is_named(tmp_path):
    path = tmp_path / "manifest.jsonl"
    path.write_text(json.dumps(recording("a.wav")) + "\n{broken\n")
    with pytest.raises(ManifestError, match=r"manifest\.jsonl, line 2"):
        read_manifest(path)
    with pytest.raises(ManifestError, match="line 1: KeyError 'path'"):
        read_manifest(write_manifest(tmp_path, {"text": "no path"}))
    with pytest.raises(ManifestError, match="No such file"):
        read_manifest(tmp_path / "missing.jsonl")


def test_roles():
    assert [parse_role(name) for name in ("agent", " Caller", "IVR")] == [
        ChannelRole.AGENT,
        ChannelRole.CUSTOMER,
        ChannelRole.IVR,
    ]
    with pytest.raises(ManifestError, match="role 'boss' is not known; use one of agent"):
        parse_role("boss")


@pytest.mark.data
def test_the_reference_set_is_complete():
    entries = read_manifest(require_data() / "manifest.jsonl")
    chosen = select(entries, Selection(kinds=("ivr-prompt", "read-speech"), min_duration_s=2.0, language="en"))
    assert len(chosen) == 88
    assert sum(entry.duration_s for entry in chosen) / 60 == pytest.approx(8.9, abs=0.05)
    assert all(entry.path.is_file() for entry in chosen)
