"""`talkpath-bench parity`: whether every path of the engine says the same, and what each precision costs and errs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.benchmarks.parity import (
    Agreement,
    ParityPlan,
    Paths,
    batched_against_serial,
    finals_agreement,
    run_paths,
)
from pipeline.benchmarks.running import Outcome, audio_s
from pipeline.benchmarks.schedule import Clip
from pipeline.benchmarks.variants import Setup
from pipeline.errors import TalkpathError
from server.bench.accuracy import word_error_rate
from server.bench.clips import clips_of
from server.bench.options import (
    AudioOption,
    CallsOption,
    Device,
    DeviceOption,
    JsonOption,
    counting_progress,
    fail,
    recordings_of,
    wide_console,
    write_figures,
)

_PERCENT = 100
_EXIT_DIFFERENT = 1
_MOST_SHOWN = 5
"""Differences of a check that are shown word by word."""
_NOTE = (
    "Incremental: each clip's interims, then its final, every decode with the one before as its draft. Offline: the "
    "final alone. Compared to the letter."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Two paths of one precision, which must agree."""

    name: str
    precision: str
    agreement: Agreement


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionFigures:
    """What a precision costs, and how well it hears."""

    precision: str
    offline_cpu_per_audio_s: float
    incremental_cpu_per_audio_s: float
    batched_cpu_per_audio_s: float
    wer: float
    equal_to_first: float
    """Share of finals that are those of the first precision, to the letter."""


def parity(  # noqa: PLR0913  # one parameter an option
    calls: CallsOption = None,
    audio: AudioOption = None,
    model: Annotated[str, typer.Option(help="Embedded name, folder or hub id.")] = "tiny.en",
    precisions: Annotated[str, typer.Option(help="Of the engine; the first is what others differ from.")] = (
        "float32,int8"
    ),
    interims_per_second: Annotated[float, typer.Option(min=0.1, help="Of each utterance's audio.")] = 1.0,
    concurrency: Annotated[int, typer.Option(min=2, help="Utterances in a batch.")] = 8,
    threads: Annotated[int, typer.Option(min=1, help="Of the engine.")] = 1,
    device: DeviceOption = Device.CPU,
    limit: Annotated[int | None, typer.Option(min=1, help="Utterances, taken evenly from all. Default: all.")] = None,
    json_file: JsonOption = None,
) -> None:
    """Compares batched with serial decoding, incremental finals with offline ones, and precisions.

    Exits with 1 when a batched or incremental text differs.
    """
    clips = clips_of(recordings_of(calls, audio), limit)
    if not clips:
        fail("no utterance is short enough for one decode")
    console = wide_console()
    setup = Setup(model=model, num_threads=threads, device=device.value)
    plan = ParityPlan(clips=clips, interims_per_s=interims_per_second, lanes=concurrency, setup=setup)
    found = _run_all(plan, precisions.split(","), console)
    checks = [check for paths in found for check in _checks(clips, paths)]
    figures = [_figures(clips, paths, found[0]) for paths in found]
    console.print(_checks_table(checks, model, clips))
    console.print(_precisions_table(figures))
    _show_differences(checks, console)
    console.print(f"\n{_NOTE}", style="dim")
    content = {
        "model": model,
        "threads": threads,
        "device": device.value,
        "checks": [asdict(check) for check in checks],
        "precisions": [asdict(row) for row in figures],
    }
    write_figures(json_file, content)
    if not all(check.agreement.is_complete for check in checks):
        raise typer.Exit(_EXIT_DIFFERENT)


def _run_all(plan: ParityPlan, precisions: Sequence[str], console: Console) -> list[Paths]:
    found = []
    with counting_progress(console) as progress:
        for precision in precisions:
            task = progress.add_task(precision, total=plan.num_decodes)
            try:
                found.append(run_paths(plan, precision.strip(), partial(progress.advance, task)))
            except TalkpathError as error:
                fail(str(error))
    return found


def _checks(clips: Sequence[Clip], paths: Paths) -> list[Check]:
    return [
        Check(
            name="batched = serial, interims and finals",
            precision=paths.precision,
            agreement=batched_against_serial(clips, paths),
        ),
        Check(
            name="incremental finals = offline",
            precision=paths.precision,
            agreement=finals_agreement(clips, paths.offline, paths.serial),
        ),
    ]


def _figures(clips: Sequence[Clip], paths: Paths, first: Paths) -> PrecisionFigures:
    def cpu_per_audio_s(outcome: Outcome) -> float:
        return outcome.cost.cpu_s / audio_s(clips)

    return PrecisionFigures(
        precision=paths.precision,
        offline_cpu_per_audio_s=cpu_per_audio_s(paths.offline),
        incremental_cpu_per_audio_s=cpu_per_audio_s(paths.serial),
        batched_cpu_per_audio_s=cpu_per_audio_s(paths.batched),
        wer=word_error_rate(clips, paths.offline.finals),
        equal_to_first=finals_agreement(clips, first.offline, paths.offline).share,
    )


def _checks_table(checks: Sequence[Check], model: str, clips: Sequence[Clip]) -> Table:
    title = f"{model}: {len(clips)} utterances, {audio_s(clips):.0f} s of audio"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True)
    table.add_column("precision")
    table.add_column("equal texts", justify="right")
    table.add_column("")
    for check in checks:
        agreement = check.agreement
        verdict = Text("same", style="green") if agreement.is_complete else Text("DIFFERENT", style="bold red")
        counts = f"{agreement.num_equal} of {agreement.num_texts}"
        table.add_row(check.name, check.precision, counts, verdict)
    return table


def _precisions_table(rows: Sequence[PrecisionFigures]) -> Table:
    title = "\nSpeed against word errors: CPU s per s of audio"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1), header_style="dim")
    table.add_column("precision")
    for name in ("finals\nalone", "with\ninterims", "in\nbatches", "WER %", f"= {rows[0].precision}\n%"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.precision,
            f"{row.offline_cpu_per_audio_s:.4f}",
            f"{row.incremental_cpu_per_audio_s:.4f}",
            f"{row.batched_cpu_per_audio_s:.4f}",
            f"{_PERCENT * row.wer:.2f}",
            f"{_PERCENT * row.equal_to_first:.0f}",
        )
    return table


def _show_differences(checks: Sequence[Check], console: Console) -> None:
    for check in checks:
        for name, expected, found in check.agreement.differing[:_MOST_SHOWN]:
            console.print(Text(f"\n{check.precision}, {check.name}: {name}\n  {expected}\n  {found}", style="red"))
