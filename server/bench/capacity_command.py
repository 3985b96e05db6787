"""`talkpath-bench capacity`: how many paced calls a real server holds."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from clients.bench.capacity import CapacityError, CapacityOptions, measure_capacity
from clients.bench.capacity_display import CapacityDisplay, capacity_table, verdict_text
from clients.bench.objective import Objective
from clients.bench.server_process import ServerStartError
from clients.replay.cli import EncodingOption
from clients.replay.plan import CallOptions, PlanError
from clients.types import Encoding
from server.bench.options import AudioOption, CallsOption, fail, recordings_of, wide_console

_TELEPHONE_HZ = 8_000


def capacity(  # noqa: PLR0913  # one parameter an option
    calls: CallsOption = None,
    audio: AudioOption = None,
    counts: Annotated[str, typer.Option(help="Calls at once: 1,4,8. Instead of --calls-from, --calls-to.")] = "",
    calls_from: Annotated[int, typer.Option(min=1, help="First number of calls at once.")] = 1,
    calls_to: Annotated[int, typer.Option(min=1, help="Last number of calls at once.")] = 32,
    step: Annotated[int, typer.Option(min=1, help="So many more each time.")] = 4,
    model: Annotated[str, typer.Option(help="Of the server that is started.")] = "tiny.en",
    override: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting of it.", metavar="SECTION.KEY=VALUE")
    ] = None,
    server: Annotated[str | None, typer.Option(help="HOST:PORT of one that runs, instead.")] = None,
    encoding: Annotated[EncodingOption, typer.Option(help="Of the calls, at 8 kHz.")] = EncodingOption.MULAW,
    chunk_ms: Annotated[int, typer.Option(min=10, help="Audio in one message.")] = 100,
    spread_s: Annotated[float, typer.Option(min=0, help="Calls begin within this time of each other.")] = 5.0,
    word_lag_s: Annotated[float, typer.Option(help="Bound of the p95 word lag.")] = Objective().word_lag_p95_s,
    finalization_s: Annotated[
        float, typer.Option(help="Bound of the p95 finalization.")
    ] = Objective().finalization_p95_s,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Also after a bound broke.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for capacity.json and the events of each step.")] = Path("capacity"),
) -> None:
    """Plays more and more calls in real time on a server, until a bound of the objective breaks."""
    if server and override:
        fail("--set changes the server that is started here, not one that --server names")
    recordings = recordings_of(calls, audio)
    options = CapacityOptions(
        recordings=recordings,
        counts=_counts(counts) if counts else _steps(calls_from, calls_to, step),
        out=out,
        calls_dir=calls,
        model=model,
        overrides=tuple(override or ()),
        server=server,
        call=CallOptions(encoding=Encoding[encoding.name], sample_rate_hz=_TELEPHONE_HZ),
        chunk_ms=chunk_ms,
        spread_s=spread_s,
        objective=Objective(word_lag_p95_s=word_lag_s, finalization_p95_s=finalization_s),
        keeps_going=keep_going,
    )
    console = wide_console()
    try:
        with CapacityDisplay(console) as display:
            report = asyncio.run(measure_capacity(options, display))
    except (CapacityError, ServerStartError, PlanError) as error:
        fail(str(error))
    console.print()
    console.print(capacity_table(report))
    console.print(f"\n{verdict_text(report)}\nfiles: {out}", soft_wrap=True)


def _steps(first: int, last: int, step: int) -> tuple[int, ...]:
    """1, 4, 8, ... with a step of 4: multiples of the step behind the first."""
    return (first, *(count for count in range(step, last + 1, step) if count > first))


def _counts(text: str) -> tuple[int, ...]:
    try:
        counts = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        counts = ()
    if not counts or counts[0] < 1:
        fail(f"--counts {text!r} is not a list of numbers of calls, such as 1,4,8")
    return counts
