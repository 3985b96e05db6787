"""What the benchmarks' commands share: options, progress, the way out."""

import json
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from clients.bench.machine import this_machine
from clients.bench.recordings import read_recordings
from clients.replay.manifest import ManifestEntry, ManifestError

EXIT_USAGE = 2
_SAMPLE_CALLS = Path(__file__).parents[2] / "tests" / "data" / "manifest.jsonl"


class Device(Enum):
    """Where models run."""

    CPU = "cpu"
    CUDA = "cuda"


CallsOption = Annotated[Path | None, typer.Option(help="Folder with calls.json and its recordings.")]
AudioOption = Annotated[Path | None, typer.Option(help="Manifest (JSON lines). Default: the project's sample calls.")]


def recordings_of(calls: Path | None, audio: Path | None) -> tuple[ManifestEntry, ...]:
    """The English recordings with exact words that the options name; leaves the program when there are none."""
    if calls is not None and audio is not None:
        fail("--calls and --audio both name recordings; give one of them")
    source = calls or audio or _SAMPLE_CALLS
    if source == _SAMPLE_CALLS and not source.is_file():
        fail("the sample calls are not installed beside the program; name recordings with --calls or --audio")
    try:
        return read_recordings(source)
    except ManifestError as error:
        fail(str(error))


JsonOption = Annotated[Path | None, typer.Option("--json", help="Write all figures here.")]


def write_figures(file: Path | None, figures: Mapping[str, Any]) -> None:
    """Writes what was measured, and the machine it was measured on, where the command was asked to."""
    if file is not None:
        content = {"machine": this_machine().as_json(), **figures}
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


DeviceOption = Annotated[Device, typer.Option(help="Where the models run.")]
_WIDE = 190
"""Columns of tables that go to a file."""


def wide_console() -> Console:
    """For tables: as wide as the terminal, and wide enough where there is none."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDE)


def counting_progress(console: Console) -> Progress:
    """Bars that count what was done; gone when all is."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def fail(message: str) -> NoReturn:
    """Leaves the program with a line for whoever typed the command."""
    sys.stderr.write(f"talkpath-bench: {message}\n")
    raise typer.Exit(EXIT_USAGE)
