"""What import-linter cannot see: every line in its room."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("pipeline", "server", "clients")
MODULES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
CORE = [
    p for p in MODULES if p.is_relative_to(ROOT / "pipeline") and "engines" not in p.parts and p.name != "worker.py"
]
MAX_LINES = 300
BANNED_CLASS_WORDS = ("Manager", "Handler", "Processor", "Utils", "Helper")
TOP_LEVEL = {"protos", "server", "clients", "pipeline", "tests", "scripts", "pyproject.toml", "README.md", "LICENSE"}


def tree(path):
    return ast.parse(path.read_text())


def name(path):
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_module_says_its_idea_and_stays_short(path):
    assert ast.get_docstring(tree(path)), "a module opens with a docstring"
    assert len(path.read_text().splitlines()) <= MAX_LINES, "split it by idea"


@pytest.mark.parametrize("path", CORE, ids=name)
def test_core_is_synchronous(path):
    awaits = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    assert not [node for node in ast.walk(tree(path)) if isinstance(node, awaits)]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_classes_are_nouns_with_one_job(path):
    classes = [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
    assert not [c for c in classes if c.endswith(BANNED_CLASS_WORDS)]


def modules_with(*words):
    return {name(p) for p in MODULES for word in words if word in p.read_text()}


def test_threads_have_one_owner():
    assert modules_with("threading.Thread") <= {"pipeline/scheduling/worker.py"}
    # What lanes share has a lock, and no thread of its own.
    assert modules_with("import threading") <= {
        "pipeline/scheduling/worker.py",
        "pipeline/engines/whisper/contexts.py",
        "pipeline/engines/hosting/hosted.py",
    }


def test_byte_decoding_is_in_codecs():
    in_pipeline = {m for m in modules_with("frombuffer") if m.startswith("pipeline/")}
    assert in_pipeline <= {"pipeline/audio/codecs.py", "pipeline/engines/whisper/ctranslate2.py"}


def test_environment_is_read_in_settings():
    assert not {m for m in modules_with("os.environ", "os.getenv") if not m.startswith("server/settings")}


def test_top_level_is_fixed():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    top = {line.split("/")[0] for line in listed.splitlines()}
    assert {entry for entry in top if not entry.startswith(".")} <= TOP_LEVEL
