"""`talkpath-bench engine`: the same interims and finals through stock transformers, faster-whisper and Talkpath."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from pipeline.benchmarks.contestants import contestants
from pipeline.benchmarks.running import Cost, Outcome, audio_s, run
from pipeline.benchmarks.schedule import Clip, schedule
from pipeline.benchmarks.variants import Setup
from pipeline.errors import TalkpathError
from server.bench.accuracy import interim_difference_rate, word_error_rate
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
_SERIAL = 1
_NOTE = (
    "× compares CPU s (on CUDA wall s). Interim ≠ final: the last interim against the final, as far as the interim "
    "goes. Greedy, English, no timestamps; peers without temperature fallback; loading and warm-up do not count. Peers "
    "decode one request after another, as their servers do, whatever --concurrency says; so do all rows of Talkpath "
    "but the one with batches. Each row of Talkpath keeps the ideas of the rows above it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFigures:
    """One row of the table."""

    name: str
    cpu_s: float
    wall_s: float
    cpu_per_audio_s: float
    times_stock: float
    """Less compute than stock transformers, as a factor."""
    times_faster_whisper: float
    wer: float
    last_interim_difference: float | None
    """Words in which last interims differ from their finals, per word of the finals; words that the finals have behind
    the interims' ends do not count."""


def engine(  # noqa: PLR0913  # one parameter an option
    calls: CallsOption = None,
    audio: AudioOption = None,
    model: Annotated[str, typer.Option(help="Embedded name, folder or hub id.")] = "tiny.en",
    interims_per_second: Annotated[float, typer.Option(min=0.1, help="Of each utterance's audio.")] = 1.0,
    concurrency: Annotated[int, typer.Option(min=1, help="Utterances at once in the row with batches.")] = 8,
    threads: Annotated[int, typer.Option(min=1, help="Of every contestant.")] = 1,
    device: DeviceOption = Device.CPU,
    limit: Annotated[int, typer.Option(min=1, help="Utterances, taken evenly from all there are.")] = 10,
    json_file: JsonOption = None,
) -> None:
    """Runs the same interims and finals through stock transformers, faster-whisper and Talkpath, idea by idea."""
    clips = clips_of(recordings_of(calls, audio), limit)
    if not clips:
        fail("no utterance is short enough for one decode")
    console = wide_console()
    setup = Setup(model=model, num_threads=threads, device=device.value)
    with tempfile.TemporaryDirectory() as scratch, counting_progress(console) as progress:
        outcomes = []
        for contestant in contestants(setup, concurrency, Path(scratch)):
            rounds = schedule(clips, interims_per_second, concurrency if contestant.with_batches else _SERIAL)
            task = progress.add_task(contestant.name, total=sum(map(len, rounds)))
            try:
                with closing(contestant.open()) as transcriber:
                    transcriber.warm_up()
                    outcomes.append(run(transcriber, clips, rounds, partial(progress.advance, task)))
            except TalkpathError as error:
                fail(f"{contestant.name}: {error}")
    rows = _figures(clips, outcomes, attrgetter("cpu_s" if device is Device.CPU else "wall_s"))
    facts = {
        "model": model,
        "threads": threads,
        "device": device.value,
        "interims_per_second": interims_per_second,
        "concurrency": concurrency,
        "utterances": len(clips),
        "audio_s": audio_s(clips),
        "requests": len(outcomes[0].texts),
    }
    console.print(_table(rows, facts))
    console.print(f"\n{_NOTE}", style="dim")
    measured = {"rows": [asdict(row) for row in rows], "texts": _texts(outcomes)}
    write_figures(json_file, {**facts, "note": _NOTE, **measured})


def _figures(clips: Sequence[Clip], outcomes: Sequence[Outcome], spent: Callable[[Cost], float]) -> list[EngineFigures]:
    """The first outcome is that of stock transformers, the second that of faster-whisper; `spent` is compared."""
    stock, faster_whisper = spent(outcomes[0].cost), spent(outcomes[1].cost)
    return [
        EngineFigures(
            name=outcome.name,
            cpu_s=outcome.cost.cpu_s,
            wall_s=outcome.cost.wall_s,
            cpu_per_audio_s=outcome.cost.cpu_s / audio_s(clips),
            times_stock=stock / spent(outcome.cost),
            times_faster_whisper=faster_whisper / spent(outcome.cost),
            wer=word_error_rate(clips, outcome.finals),
            last_interim_difference=(
                interim_difference_rate(outcome.finals, outcome.last_interims) if outcome.last_interims else None
            ),
        )
        for outcome in outcomes
    ]


def _texts(outcomes: Sequence[Outcome]) -> dict[str, list[dict[str, str | None]]]:
    """For whoever wants to see which words differ."""
    return {
        outcome.name: [
            {"final": text, "last_interim": outcome.last_interims.get(clip)}
            for clip, text in sorted(outcome.finals.items())
        ]
        for outcome in outcomes
    }


def _table(rows: Sequence[EngineFigures], facts: dict[str, Any]) -> Table:
    title = (
        f"{facts['model']}, {facts['device']}, threads: {facts['threads']}, interims a second: "
        f"{facts['interims_per_second']:g}; utterances: {facts['utterances']}, {facts['audio_s']:.0f} s of audio, "
        f"requests: {facts['requests']}"
    )
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True)
    for name in ("CPU s", "wall s", "CPU/\naudio", "×\nstock", "× fast.\nwhisper", "WER\n%", "int. ≠\nfinal %"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        difference = row.last_interim_difference
        table.add_row(
            row.name,
            f"{row.cpu_s:.2f}",
            f"{row.wall_s:.2f}",
            f"{row.cpu_per_audio_s:.4f}",
            f"{row.times_stock:.1f}",
            f"{row.times_faster_whisper:.1f}",
            f"{_PERCENT * row.wer:.2f}",
            "–" if difference is None else f"{_PERCENT * difference:.1f}",
        )
    return table
