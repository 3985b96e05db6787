#!/usr/bin/env python3
"""Speaks the call scripts of tests/data/scripts as 8 kHz telephone recordings with exact text and times."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from sample_calls.dialogue import ScriptError
from sample_calls.line import write_wav
from sample_calls.manifest import manifest_row, write_manifest
from sample_calls.timeline import render_call
from sample_calls.variation import AS_WRITTEN_SEED, load_variant
from sample_calls.voice import Voice, VoiceMissingError

DATA_FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data"
EXIT_USAGE = 2

HELP = """Speaks call scripts as telephone recordings and writes their truth into manifest.jsonl beside them.

Calls are WAV files of two channels at 8 kHz in G.711 mu-law: channel 1 is the agent, channel 2 the customer.
The script format is described in scripts/sample_calls/dialogue.py.

\b
Examples:
  make_sample_calls.py --all                        the committed recordings, again
  make_sample_calls.py billing --out /tmp/calls     one call, elsewhere
  make_sample_calls.py --all --out /tmp/calls --seed 1 --takes 20
    twenty variants of every script: other words, tempo, voices, gaps and levels
"""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(help=HELP)
def make(
    names: Annotated[list[str] | None, typer.Argument(help="Scripts to speak, by name without .toml.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Speak all scripts.")] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for the recordings and their manifest.jsonl.", show_default="tests/data")
    ] = DATA_FOLDER,
    scripts: Annotated[
        Path, typer.Option(help="Folder of the call scripts (*.toml).", show_default="tests/data/scripts")
    ] = DATA_FOLDER / "scripts",
    seed: Annotated[int, typer.Option(min=0, help="0 speaks scripts as written; others give variants.")] = 0,
    takes: Annotated[int, typer.Option(min=1, help="Variants of each script, with seeds from --seed upwards.")] = 1,
) -> None:
    """Command line; see `HELP`."""
    console = Console(stderr=True)
    try:
        paths = _script_paths(scripts, names or [], every)
        rows = _make_all(paths, out, range(seed, seed + takes), console)
    except (ScriptError, VoiceMissingError) as error:
        typer.secho(f"make_sample_calls: {error}", fg="red", err=True)
        raise typer.Exit(EXIT_USAGE) from error
    manifest = write_manifest(out, rows)
    total_s = sum(row["duration_s"] for row in rows)
    total_kb = sum(row["bytes"] for row in rows) / 1000
    print(f"{len(rows)} recordings, {total_s:.1f} s, {total_kb:.0f} kB in {out}; truth in {manifest.name}")


def _script_paths(folder: Path, names: list[str], every: bool) -> list[Path]:
    known = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ScriptError(f"no script {unknown[0]!r} in {folder}; there are {', '.join(known) or 'none'}")
    if not names and not every:
        raise ScriptError(f"nothing to do; name scripts ({', '.join(known) or 'none found'}) or use --all")
    return list(known.values()) if every else [known[name] for name in names]


def _make_all(paths: list[Path], out: Path, seeds: range, console: Console) -> list[dict[str, Any]]:
    if out.resolve() == DATA_FOLDER and seeds != range(AS_WRITTEN_SEED, AS_WRITTEN_SEED + 1):
        raise ScriptError("variants do not belong in the repository; give --out a folder elsewhere")
    variants = [(load_variant(path, seed), path.stem, seed) for path in paths for seed in seeds]
    voice = Voice.load()
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for script, script_name, seed in track(variants, "Speaking", console=console, disable=not console.is_terminal):
        call = render_call(script, voice, seed)
        path = out / f"{script.name}.wav"
        write_wav(path, call.channels, script.encoding)
        rows.append(manifest_row(call, path, script_name, seed))
    return rows


if __name__ == "__main__":
    app()
