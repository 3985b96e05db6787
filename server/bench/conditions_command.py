"""`talkpath-bench conditions`: word errors on bad lines, by what is done against noise."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from clients.audio_files import AudioFileError, mix_channels, read_recording, resample
from pipeline.benchmarks.conditions import Condition, LineListener, conditions
from pipeline.benchmarks.schedule import Clip
from pipeline.benchmarks.talkpath import open_engine
from pipeline.benchmarks.variants import Setup
from pipeline.config import DenoisingMode
from pipeline.errors import TalkpathError
from pipeline.types import CORE_SAMPLE_RATE_HZ, Samples
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
_MODES = (DenoisingMode.OFF, DenoisingMode.VAD_ONLY, DenoisingMode.MIX)
_NOTE = (
    "WER % of finals, whole path of a call at 8 kHz: detection, endpointing, recognition. dB: of speech over noise, by"
    " active speech level. All rows have the same words, all columns the same noise."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionFigures:
    """One row of the table."""

    kind: str
    degree: str
    wer: dict[str, float]
    """By denoising mode."""


def conditions_table(  # noqa: PLR0913  # one parameter an option
    calls: CallsOption = None,
    audio: AudioOption = None,
    model: Annotated[str, typer.Option(help="Embedded name, folder or hub id.")] = "tiny.en",
    precision: Annotated[str, typer.Option(help="Of the engine.")] = "auto",
    noise: Annotated[list[Path] | None, typer.Option(help="Recording of a noise; may be given again.")] = None,
    kinds: Annotated[str, typer.Option(help="Kinds of lines, such as clean,babble,level. Default: all.")] = "",
    threads: Annotated[int, typer.Option(min=1, help="Of the engine.")] = 2,
    device: DeviceOption = Device.CPU,
    limit: Annotated[int, typer.Option(min=1, help="Utterances, taken evenly from all there are.")] = 6,
    json_file: JsonOption = None,
) -> None:
    """Measures word errors by kind and degree of noise, by level, and by what denoising is used for."""
    clips = clips_of(recordings_of(calls, audio), limit)
    if not clips:
        fail("no utterance is short enough for one decode")
    recorded = {path.stem: _noise(path) for path in noise or ()}
    console = wide_console()
    measured = _chosen(conditions([clip.samples for clip in clips], recorded), kinds)
    try:
        rows = _measure(
            clips, measured, Setup(model=model, num_threads=threads, device=device.value), precision, console
        )
    except TalkpathError as error:
        fail(str(error))
    total = ConditionFigures(kind="mean", degree="", wer={m.value: _mean(rows, m) for m in _MODES})
    console.print(_table([*rows, total], model, clips))
    console.print(f"\n{_NOTE}", style="dim")
    facts = {"model": model, "utterances": len(clips), "note": _NOTE}
    write_figures(json_file, {**facts, "rows": [asdict(row) for row in rows], "mean": total.wer})


def _chosen(found: Sequence[Condition], kinds: str) -> list[Condition]:
    known = list(dict.fromkeys(condition.kind for condition in found))
    wanted = [kind.strip() for kind in kinds.split(",")] if kinds else known
    for kind in wanted:
        if kind not in known:
            fail(f"--kinds {kind!r} is not known; use {', '.join(known)}")
    return [condition for condition in found if condition.kind in wanted]


def _noise(path: Path) -> Samples:
    try:
        samples: Samples = resample(mix_channels(read_recording(path)), CORE_SAMPLE_RATE_HZ).samples[:, 0]
    except AudioFileError as error:
        fail(str(error))
    if not samples.any():
        fail(f"{path} is silent; name a recording of a noise")
    return samples


def _measure(
    clips: Sequence[Clip], measured: Sequence[Condition], setup: Setup, precision: str, console: Console
) -> list[ConditionFigures]:
    engine = open_engine(setup, precision)
    listener = LineListener(engine)
    rows = []
    try:
        with counting_progress(console) as progress:
            task = progress.add_task("lines", total=len(measured) * len(clips))
            for condition in measured:
                texts: dict[str, dict[int, str]] = {mode.value: {} for mode in _MODES}
                for index, clip in enumerate(clips):
                    for mode in _MODES:
                        texts[mode.value][index] = listener.words(clip.samples, condition, mode, seed=index)
                    listener.forget()
                    progress.advance(task)
                wer = {name: word_error_rate(clips, said) for name, said in texts.items()}
                rows.append(ConditionFigures(kind=condition.kind, degree=condition.degree, wer=wer))
    finally:
        engine.close()
    return rows


def _mean(rows: Sequence[ConditionFigures], mode: DenoisingMode) -> float:
    return sum(row.wer[mode.value] for row in rows) / len(rows)


def _table(rows: Sequence[ConditionFigures], model: str, clips: Sequence[Clip]) -> Table:
    title = f"{model}: {len(clips)} utterances on bad lines, WER % by denoising"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1), header_style="dim")
    table.add_column("line")
    table.add_column("", justify="right")
    for mode in _MODES:
        table.add_column(mode.value, justify="right")
    for row in rows:
        figures = (f"{_PERCENT * row.wer[mode.value]:.1f}" for mode in _MODES)
        table.add_row(row.kind, row.degree, *figures)
    return table
