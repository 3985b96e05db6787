"""`talkpath-bench profile`: the engine's steps against reading their weights once, and what the front end costs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.table import Table

from clients.audio_files import encode_mulaw, to_pcm16
from pipeline.benchmarks.frontend_profile import LINE_RATE_HZ, StageFigures, line_noise, profile_front_end
from pipeline.benchmarks.schedule import Clip
from pipeline.benchmarks.talkpath import open_engine
from pipeline.benchmarks.variants import Setup
from pipeline.errors import TalkpathError
from pipeline.types import CORE_SAMPLE_RATE_HZ, Samples
from server.bench.clips import clips_of
from server.bench.options import AudioOption, CallsOption, JsonOption, fail, recordings_of, wide_console, write_figures

if TYPE_CHECKING:
    from pipeline.benchmarks.engine_profile import PassFigures

_PERCENT = 100
_LABEL_WIDTH = 32
_GIGA = 1e9
_MEGA = 1e6
_QUIET_LINE_DBFS = -65.0
_NARROW_STEP = CORE_SAMPLE_RATE_HZ // LINE_RATE_HZ
_FRONT_END_S = 10
_NOTE = (
    "Limit: reading the weights once from memory; weights that stay in the cache may be read quicker. Cross-attention "
    "reads the audio's keys and values besides, self-attention those of the tokens before."
)
_DECODED_S = 5.0
"""Length of the clip that the engine is watched with, if there is one."""


def profile(  # noqa: PLR0913  # one parameter an option
    calls: CallsOption = None,
    audio: AudioOption = None,
    model: Annotated[str, typer.Option(help="Embedded name, folder or hub id.")] = "tiny.en",
    precision: Annotated[str, typer.Option(help="Of the engine.")] = "auto",
    rows: Annotated[str, typer.Option(help="Rows of a decoder step.")] = "1,8",
    threads: Annotated[int, typer.Option(min=1, help="Of the engine.")] = 1,
    json_file: JsonOption = None,
) -> None:
    """Shows where the time of engine and audio front end goes, on the CPU."""
    # Imported when there is something to measure: they bring torch.
    from pipeline.benchmarks.engine_profile import profile_engine
    from pipeline.benchmarks.memory import read_bytes_per_s

    clips = clips_of(recordings_of(calls, audio), limit=None)
    if not clips:
        fail("no utterance is short enough for one decode")
    console = wide_console()
    with console.status("memory, engine, front end ..."):
        bytes_per_s = read_bytes_per_s(threads)
        clip = min(clips, key=lambda c: abs(c.duration_s - _DECODED_S))
        try:
            with closing(open_engine(Setup(model=model, num_threads=threads), precision)) as engine:
                found = profile_engine(engine, clip, [int(count) for count in rows.split(",")], bytes_per_s)
        except (TalkpathError, ValueError) as error:
            fail(str(error))
        lines = {"speech": _speech(clips), "silence": line_noise(_FRONT_END_S * LINE_RATE_HZ, _QUIET_LINE_DBFS)}
        stages = {name: profile_front_end(encode_mulaw(to_pcm16(line)).tobytes()) for name, line in lines.items()}
    console.print(f"{model}, {found.precision}; memory is read at {bytes_per_s / _GIGA:.1f} GB/s")
    for passes in found.passes:
        console.print(_pass_table(passes))
    console.print(_stages_table(stages))
    console.print(f"\n{_NOTE}", style="dim")
    content = {
        "model": model,
        "threads": threads,
        "read_bytes_per_s": bytes_per_s,
        "engine": asdict(found),
        "front_end_us_per_frame": {
            name: {figures.stage: figures.us_per_frame for figures in found} for name, found in stages.items()
        },
    }
    write_figures(json_file, content)


def _speech(clips: Sequence[Clip]) -> Samples:
    """Speech without pauses at 8 kHz, a whole number of chunks."""
    spoken = [clip.samples[: len(clip.samples) - clip.tail_samples] for clip in clips]
    narrow = np.concatenate(spoken)[: _FRONT_END_S * CORE_SAMPLE_RATE_HZ : _NARROW_STEP]
    repeats = -(-_FRONT_END_S * LINE_RATE_HZ // len(narrow))
    return np.tile(narrow, repeats)[: _FRONT_END_S * LINE_RATE_HZ]


def _pass_table(figures: PassFigures) -> Table:
    title = f"\n{figures.title} ({figures.num_passes} of them)"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True, min_width=_LABEL_WIDTH)
    for name in ("µs", "weights MB", "limit µs", "× limit"):
        table.add_column(name, justify="right")
    for part in (*figures.parts, figures.total):
        table.add_row(
            part.part,
            f"{part.measured_us:.0f}",
            f"{part.weight_bytes / _MEGA:.2f}" if part.weight_bytes else "",
            f"{part.limit_us:.0f}" if part.weight_bytes else "",
            f"{part.measured_us / part.limit_us:.1f}" if part.weight_bytes else "",
        )
    return table


def _stages_table(stages: dict[str, list[StageFigures]]) -> Table:
    title = "\naudio front end of one call, 8 kHz mu-law: CPU time of 10 ms of audio"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True, min_width=_LABEL_WIDTH)
    for line in stages:
        table.add_column(f"{line}\nµs", justify="right")
        table.add_column("% of\na core", justify="right")
    for per_line in zip(*stages.values(), strict=True):
        cells = [cell for f in per_line for cell in (f"{f.us_per_frame:.1f}", f"{_PERCENT * f.core_share:.2f}")]
        table.add_row(per_line[0].stage, *cells)
    return table
