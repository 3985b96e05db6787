"""Every subcommand once, on little audio, as people call it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIP = "clip_hello.wav"


def bench(*arguments: str, exit_code: int = 0) -> str:
    command = [sys.executable, "-W", "ignore", "-c", "from server.bench.cli import main; main()", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == exit_code, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


@pytest.fixture
def one_clip(tmp_path: Path) -> Path:
    """A manifest with one recording of two seconds."""
    rows = (ROOT / "tests" / "data" / "manifest.jsonl").read_text().splitlines()
    row = next(json.loads(line) for line in rows if CLIP in line)
    row["path"] = str(ROOT / "tests" / "data" / CLIP)
    path = tmp_path / "manifest.jsonl"
    path.write_text(json.dumps(row))
    return path


@pytest.mark.slow
def test_engine_compares_all_with_stock(tmp_path, one_clip):
    pytest.importorskip("faster_whisper")
    file = tmp_path / "engine.json"
    output = bench("engine", "--audio", str(one_clip), "--concurrency", "2", "--json", str(file))
    report = json.loads(file.read_text())
    rows = {row["name"]: row for row in report["rows"]}
    assert list(rows)[:2] == ["stock transformers, float32", "faster-whisper, int8"]
    assert rows["stock transformers, float32"]["times_stock"] == 1
    assert rows["+ drafts"]["times_stock"] > 1
    assert all(row["wer"] == 0 for row in rows.values())
    assert all(name in output for name in ("silence memory", "batches of 2", "Peers"))


@pytest.mark.slow
def test_parity_holds_and_shows_precisions(tmp_path):
    file = tmp_path / "parity.json"
    output = bench("parity", "--limit", "3", "--precisions", "float32,bfloat16", "--json", str(file))
    report = json.loads(file.read_text())
    assert [row["precision"] for row in report["precisions"]] == ["float32", "bfloat16"]
    assert all(c["agreement"]["num_equal"] == c["agreement"]["num_texts"] for c in report["checks"][:2])
    assert "Speed against word errors" in output


def test_parity_knows_its_precisions():
    assert "'int2' is unknown" in bench("parity", "--limit", "1", "--precisions", "int2", exit_code=2)


@pytest.mark.slow
def test_profile_shows_steps_and_stages(tmp_path, one_clip):
    file = tmp_path / "profile.json"
    bench("profile", "--audio", str(one_clip), "--precision", "float32", "--json", str(file))
    report = json.loads(file.read_text())
    titles = [found["title"] for found in report["engine"]["passes"]]
    assert titles[:2] == ["decoder step, 1 row", "decoder step, 8 rows"]
    assert titles[2].startswith("encoder pass")
    step = {part["part"]: part for part in report["engine"]["passes"][0]["parts"]}
    assert step["vocabulary projection"]["weight_bytes"] == 51_864 * 384 * 4
    assert all(part["measured_us"] > 0 for part in step.values())
    assert report["front_end_us_per_frame"]["silence"].keys() == report["front_end_us_per_frame"]["speech"].keys()


def test_capacity_counts_calls_and_writes_what_it_saw(tmp_path, one_clip):
    out = tmp_path / "capacity"
    options = ["--model", "scripted:bench", "--audio", str(one_clip), "--counts", "1,2", "--spread-s", "0.2"]
    output = bench("capacity", *options, "--set", "recognition.hangover_ms=400", "--out", str(out), "--keep-going")
    report = json.loads((out / "capacity.json").read_text())
    assert report["model"] == "scripted:bench"
    assert report["server_settings"]["recognition"]["hangover_ms"] == 400
    assert report["machine"]["cores"] >= 1
    assert [step["num_calls"] for step in report["steps"]] == [1, 2]
    for step in report["steps"]:
        assert not any(step["losses"].values())
        assert step["words_shown"] == 1
        assert step["usage"]["server_cpu_s"] > 0
        run = json.loads((out / f"calls_{step['num_calls']:03d}" / "run.json").read_text())
        assert len(run["streams"]) == step["num_calls"]
        assert all(stream["drained"] for stream in run["streams"])
    assert "held:" in output


def test_capacity_says_what_is_wrong(tmp_path):
    out = ["--out", str(tmp_path / "out")]
    assert "no such setting" in bench("capacity", "--set", "server.nothing=1", *out, exit_code=2)
    assert "--counts 'many'" in bench("capacity", "--counts", "many", *out, exit_code=2)
    assert "no server answers" in bench("capacity", "--server", "127.0.0.1:9", *out, exit_code=2)
    assert "calls.json" in bench("capacity", "--calls", str(tmp_path), *out, exit_code=2)


@pytest.mark.slow
def test_conditions_measures_every_line_in_every_mode(tmp_path, one_clip):
    file = tmp_path / "conditions.json"
    noise = ROOT / "tests" / "data" / "clip_numbers.wav"
    kinds = "clean,clip_numbers,level"
    arguments = ("--audio", str(one_clip), "--noise", str(noise), "--kinds", kinds, "--json", str(file))
    output = bench("conditions", *arguments)
    rows = json.loads(file.read_text())["rows"]
    assert [row["kind"] for row in rows] == ["clean", *["clip_numbers"] * 3, *["level"] * 3]
    assert all(list(row["wer"]) == ["off", "vad_only", "mix"] for row in rows)
    assert rows[0]["wer"]["off"] == 0
    assert "WER % by denoising" in " ".join(output.split())  # the line may be wrapped
    assert "-45 dBFS" in output


def test_conditions_needs_a_noise_that_can_be_read(one_clip):
    assert "nowhere.wav" in bench("conditions", "--audio", str(one_clip), "--noise", "nowhere.wav", exit_code=2)


def test_conditions_knows_its_lines(one_clip):
    said = bench("conditions", "--audio", str(one_clip), "--kinds", "rain", exit_code=2)
    assert "'rain' is not known; use clean, white noise" in said
