"""The committed recordings are what their manifest says, to the sample."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

DATA = Path(__file__).parents[1] / "data"
ROWS: dict[str, dict[str, Any]] = {
    row["path"]: row for row in map(json.loads, (DATA / "manifest.jsonl").read_text(encoding="utf-8").splitlines())
}
CALLS = [name for name, row in ROWS.items() if row["kind"] == "sample-call"]
MAX_TOTAL_BYTES = 2_800_000
SAMPLE_RATE_HZ = 8_000
WAVE_FORMAT_MULAW = 7
FRAME_SAMPLES = 160
EDGE_SAMPLES = 240
SPEECH_DBFS = -45.0
EDGE_DBFS = -56.0
"""A word may fade out softly, but above the floor."""
FLOOR_DBFS = -58.0


def channel(name: str, tag: int) -> np.ndarray:
    samples, rate = soundfile.read(DATA / name, dtype="float64", always_2d=True)
    assert rate == SAMPLE_RATE_HZ
    return samples[:, tag - 1]


def level_dbfs(samples: np.ndarray) -> float:
    return float(10.0 * np.log10(np.mean(samples**2) + 1e-12))


def frame_levels_dbfs(samples: np.ndarray) -> np.ndarray:
    whole = samples[: len(samples) // FRAME_SAMPLES * FRAME_SAMPLES]
    return np.array([level_dbfs(frame) for frame in whole.reshape(-1, FRAME_SAMPLES)])


def span(row: dict[str, Any]) -> slice:
    return slice(round(row["start_s"] * SAMPLE_RATE_HZ), round(row["end_s"] * SAMPLE_RATE_HZ))


def test_every_recording_and_script_is_in_the_manifest():
    assert set(ROWS) == {path.name for path in DATA.glob("*.wav")}
    assert {Path(row["source_path"]).stem for row in ROWS.values()} == {
        p.stem for p in (DATA / "scripts").glob("*.toml")
    }
    assert {"billing.wav", "address_change.wav", "crosstalk.wav", "hold.wav"} <= set(CALLS)


def test_the_recordings_stay_small():
    assert sum(path.stat().st_size for path in DATA.glob("*.wav")) < MAX_TOTAL_BYTES


@pytest.mark.parametrize("name", ROWS)
def test_file_matches_its_row(name: str):
    row, content = ROWS[name], (DATA / name).read_bytes()
    assert row["sha256"] == hashlib.sha256(content).hexdigest()
    assert row["bytes"] == len(content)
    info = soundfile.info(DATA / name)
    assert (info.samplerate, info.channels, f"WAV/{info.subtype}") == (
        SAMPLE_RATE_HZ,
        row["num_channels"],
        row["encoding"],
    )
    assert info.frames / SAMPLE_RATE_HZ == pytest.approx(row["duration_s"], abs=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_stereo_mulaw_wav(name: str):
    header = (DATA / name).read_bytes()[:36]
    assert (header[:4], header[8:12]) == (b"RIFF", b"WAVE")
    format_at = header.index(b"fmt ") + 8
    assert int.from_bytes(header[format_at : format_at + 2], "little") == WAVE_FORMAT_MULAW
    assert [c["role"] for c in ROWS[name]["channels"]] == ["agent", "customer"]
    assert ROWS[name]["num_channels"] == 2


@pytest.mark.parametrize("name", ROWS)
def test_texts_agree_with_the_utterances(name: str):
    row = ROWS[name]
    starts = [u["start_s"] for u in row["utterances"]]
    assert starts == sorted(starts)
    assert row["text"] == " ".join(u["text"] for u in row["utterances"])
    for described in row["channels"]:
        own = [u for u in row["utterances"] if u["channel_tag"] == described["channel_tag"]]
        assert own
        assert described["text"] == " ".join(u["text"] for u in own)
        assert all(before["end_s"] < after["start_s"] for before, after in zip(own, own[1:], strict=False))


@pytest.mark.parametrize("name", ROWS)
def test_speech_lies_where_it_is_said_to(name: str):
    for utterance in ROWS[name]["utterances"]:
        assert 0.0 < utterance["start_s"] < utterance["end_s"] < ROWS[name]["duration_s"]
        spoken = channel(name, utterance["channel_tag"])[span(utterance)]
        # The level of -20 dBFS is that of the speech alone; its own short gaps take a little off.
        assert -26.0 < level_dbfs(spoken) < -18.0
        # Audible from the first to the last moment, not only in the middle.
        assert level_dbfs(spoken[:EDGE_SAMPLES]) > EDGE_DBFS
        assert level_dbfs(spoken[-EDGE_SAMPLES:]) > EDGE_DBFS
        assert np.mean(frame_levels_dbfs(spoken) > SPEECH_DBFS) > 0.5


@pytest.mark.parametrize("name", ROWS)
def test_the_line_is_quiet_elsewhere(name: str):
    for described in ROWS[name]["channels"]:
        tag = described["channel_tag"]
        samples = channel(name, tag)
        is_quiet = np.ones(len(samples), bool)
        for busy in ROWS[name]["utterances"] + [h for h in ROWS[name]["sounds"] if h["kind"] != "silence"]:
            if busy["channel_tag"] == tag:
                is_quiet[span(busy)] = False
        levels = frame_levels_dbfs(samples[is_quiet])
        assert levels.max() < FLOOR_DBFS
        assert -68.0 < level_dbfs(samples[is_quiet]) < -62.0


def test_crosstalk_overlaps_and_the_other_calls_do_not():
    overlaps = ROWS["crosstalk.wav"]["overlaps"]
    assert len(overlaps) == 2
    assert not any(row["overlaps"] for name, row in ROWS.items() if name != "crosstalk.wav")
    assert overlaps[0]["end_s"] - overlaps[0]["start_s"] > 0.5
    for overlap in overlaps:
        for tag in (1, 2):
            assert level_dbfs(channel("crosstalk.wav", tag)[span(overlap)]) > -30.0


def test_hold_has_low_music_then_silence_on_the_customers_line():
    music, silence = ROWS["hold.wav"]["sounds"]
    assert (music["kind"], silence["kind"]) == ("music", "silence")
    assert {music["channel_tag"], silence["channel_tag"]} == {2}
    assert music["end_s"] - music["start_s"] > 4.0
    assert -40.0 < level_dbfs(channel("hold.wav", 2)[span(music)]) < -30.0
    assert level_dbfs(channel("hold.wav", 1)[span(music)]) < FLOOR_DBFS
    assert level_dbfs(channel("hold.wav", 2)[span(silence)]) < FLOOR_DBFS


def test_keys_are_their_two_frequencies():
    pressed = [sound for sound in ROWS["everything.wav"]["sounds"] if sound["kind"] == "key"]
    assert "".join(sound["key"] for sound in pressed) == "40217#"
    for sound, expected_hz in zip(pressed[:2], ([770, 1209], [941, 1336]), strict=True):
        tone = channel("everything.wav", sound["channel_tag"])[span(sound)]
        power = np.abs(np.fft.rfft(tone)) ** 2
        strongest_hz = sorted(np.fft.rfftfreq(len(tone), 1 / SAMPLE_RATE_HZ)[np.argsort(power)[-6:]])
        assert {hz for hz in expected_hz if np.min(np.abs(np.array(strongest_hz) - hz)) <= 10} == set(expected_hz)


def test_calls_keep_to_the_telephone_band():
    samples = channel("billing.wav", 2)
    power = np.abs(np.fft.rfft(samples)) ** 2
    frequencies_hz = np.fft.rfftfreq(len(samples), 1.0 / SAMPLE_RATE_HZ)
    in_band = power[(frequencies_hz >= 300.0) & (frequencies_hz <= 3_400.0)].sum()
    # What little lies outside is the flanks' and the companding's.
    assert power[(frequencies_hz < 150.0) | (frequencies_hz > 3_600.0)].sum() < 0.001 * in_band


def test_pauses_inside_a_turn_part_its_utterances():
    own = [u for u in ROWS["address_change.wav"]["utterances"] if u["channel_tag"] == 2]
    pauses_s = [after["start_s"] - before["end_s"] for before, after in zip(own[-3:], own[-2:], strict=False)]
    assert pauses_s == pytest.approx([0.6, 0.6], abs=1e-6)
