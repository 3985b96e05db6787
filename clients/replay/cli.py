"""`talkpath-replay`: plays recordings as calls, shows the words as they come, and measures the server."""

import asyncio
import math
import sys
import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from clients.errors import RecognitionError
from clients.recognizer import Recognizer
from clients.replay.display import make_display
from clients.replay.events_file import write_events
from clients.replay.manifest import ManifestEntry, ManifestError, Selection, parse_role, read_manifest, select
from clients.replay.plan import CallOptions, PlanError, attach_references, find_recordings, plan_calls, read_hints
from clients.replay.player import PlayOptions, play_all
from clients.replay.report import write_report
from clients.replay.summary import Summary, summarize, summary_table
from clients.types import Denoise, Encoding, Profile, ServerInfo

DEFAULT_SERVER = "127.0.0.1:50051"
CONNECT_TIMEOUT_S = 5.0
CALLS_PER_CONNECTION = 50
"""Servers and proxies often take 100 streams on one connection."""
EXIT_CALL_FAILED = 1
EXIT_USAGE = 2


class EncodingOption(Enum):
    """Encodings as the command line writes them."""

    LINEAR16 = "linear16"
    MULAW = "mulaw"
    ALAW = "alaw"


class ProfileOption(Enum):
    """Endpointing profiles as the command line writes them."""

    DEFAULT = "default"
    CONVERSATION = "conversation"
    SHORT_ANSWER = "short_answer"
    DICTATION = "dictation"


class DenoiseOption(Enum):
    """Noise suppression as the command line writes it."""

    DEFAULT = "default"
    OFF = "off"
    VAD_ONLY = "vad_only"
    MIX = "mix"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """A whole run, as the command line asks for it."""

    audio: list[Path]
    server: str
    play: PlayOptions
    call: CallOptions
    reference: Path | None
    selection: Selection
    repeat: int
    events: Path | None
    report: Path | None
    has_interims: bool


class UsageError(Exception):
    """Something to be put right on the command line; its text is one line."""


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def replay(  # noqa: PLR0913  # one parameter an option
    audio: Annotated[list[Path] | None, typer.Argument(help="Recordings, or folders of them.")] = None,
    server: Annotated[str, typer.Option(help="HOST:PORT of the server.")] = DEFAULT_SERVER,
    speed: Annotated[float, typer.Option(min=0, help="1 is real time, 0 as fast as the server takes it.")] = 1.0,
    concurrency: Annotated[int, typer.Option(min=1, help="Calls at once.")] = 1,
    repeat: Annotated[int, typer.Option(min=1, help="Plays of each recording.")] = 1,
    chunk_ms: Annotated[int, typer.Option(min=1, help="Audio in one message.")] = 100,
    language: Annotated[str, typer.Option(help="BCP-47, or auto. Default: the manifest's, else the server's.")] = "",
    model: Annotated[str, typer.Option(help="One of the server's models. Default: its first.")] = "",
    encoding: Annotated[EncodingOption | None, typer.Option(help="Default: the file's own, or linear16.")] = None,
    rate: Annotated[
        int | None, typer.Option(min=1, help="Hz. Default: the file's own, if the server takes it.")
    ] = None,
    channels: Annotated[str, typer.Option(help="Role of each channel: agent,customer. One role mixes all.")] = "",
    profile: Annotated[ProfileOption, typer.Option(help="What kind of speech is expected.")] = ProfileOption.DEFAULT,
    hangover_ms: Annotated[int | None, typer.Option(help="Silence that ends an utterance.")] = None,
    hint: Annotated[list[str] | None, typer.Option(help="Phrase that is likely in the calls. Repeatable.")] = None,
    hints: Annotated[Path | None, typer.Option(help="File of such phrases, one a line.")] = None,
    denoise: Annotated[DenoiseOption, typer.Option(help="Noise suppression.")] = DenoiseOption.DEFAULT,
    scene: Annotated[bool, typer.Option("--scene", help="Shows keys, tones, silence and the like, too.")] = False,
    reference: Annotated[Path | None, typer.Option(help="Manifest (JSON lines) with the exact words.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only recordings of this kind. Repeatable.")] = None,
    min_duration_s: Annotated[float, typer.Option(help="Only recordings of at least this length.")] = 0.0,
    only_language: Annotated[str, typer.Option(help="Only recordings in this language.")] = "",
    filter_: Annotated[str, typer.Option("--filter", help="Only recordings with this in their name.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many.")] = None,
    events: Annotated[Path | None, typer.Option(help="Write all events here, as JSON lines.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write report.html and report.json to this folder.")] = None,
    turns: Annotated[bool, typer.Option("--turns", help="Ask for turn events; --events has them.")] = False,
    show_interims: Annotated[bool, typer.Option("--show-interims", help="Interims also without a terminal.")] = False,
) -> None:
    """Plays recordings as calls, shows the words as they come, and measures the server.

    Without AUDIO, every recording of the --reference manifest that has an exact text is played.
    """
    try:
        options = RunOptions(
            audio=audio or [],
            server=server,
            play=PlayOptions(speed=speed, concurrency=concurrency, chunk_ms=chunk_ms),
            call=CallOptions(
                encoding=Encoding[encoding.name] if encoding else None,
                sample_rate_hz=rate,
                language_code=language,
                model=model,
                roles=tuple(parse_role(role) for role in channels.split(",")) if channels else (),
                denoise=Denoise[denoise.name],
                profile=Profile[profile.name],
                turn_events=turns,
                hangover_ms=hangover_ms,
                scene_events=scene,
                hints=(*(hint or ()), *(read_hints(hints) if hints else ())),
            ),
            reference=reference,
            selection=Selection(
                kinds=tuple(kind or ()),
                min_duration_s=min_duration_s,
                language=only_language,
                name_part=filter_,
                limit=limit,
            ),
            repeat=repeat,
            events=events,
            report=report,
            has_interims=show_interims,
        )
        summary = asyncio.run(_run(options, Console(highlight=False)))
    except (UsageError, ManifestError, PlanError) as error:
        _fail(str(error))
    if summary.failures:
        raise typer.Exit(EXIT_CALL_FAILED)


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"talkpath-replay: {message}\n")
    raise typer.Exit(EXIT_USAGE)


def _sources(options: RunOptions) -> list[ManifestEntry | Path]:
    entries = read_manifest(options.reference) if options.reference else ()
    if options.audio:
        sources = attach_references(find_recordings(options.audio), entries)
        chosen = [source for source in sources if options.selection.name_part in str(_name(source))]
        return chosen[: options.selection.limit]
    if not options.reference:
        raise UsageError("nothing to play; name recordings, or a manifest with --reference")
    return list(select(entries, options.selection))


def _name(source: ManifestEntry | Path) -> Path | str:
    return source.name if isinstance(source, ManifestEntry) else source


async def _run(options: RunOptions, console: Console) -> Summary:
    sources = _sources(options)
    if not sources:
        raise UsageError("no recording is left to play; loosen --kind, --min-duration-s, --only-language or --filter")
    num_connections = math.ceil(options.play.concurrency / CALLS_PER_CONNECTION)
    async with Recognizer(options.server, num_connections=num_connections) as recognizer:
        info = await _reach(recognizer)
        calls = plan_calls(sources, options.call, info.limits, options.repeat)
        began_s = time.monotonic()
        display = make_display(
            console,
            calls,
            concurrency=options.play.concurrency,
            speed=options.play.speed,
            has_interims=options.has_interims,
        )
        with display:
            traces = await play_all(recognizer, calls, options.play, display)
        summary = summarize(traces, time.monotonic() - began_s, _settings(options, info))
    console.print(summary_table(summary))
    _write_files(options, summary, console)
    return summary


async def _reach(recognizer: Recognizer) -> ServerInfo:
    try:
        return await recognizer.server_info(timeout_s=CONNECT_TIMEOUT_S)
    except RecognitionError as error:
        if error.status in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
            raise UsageError(
                f"no server answers at {recognizer.address}; start one with `talkpath-server --model tiny.en`, "
                "or name its address with --server HOST:PORT"
            ) from error
        raise UsageError(f"the server at {recognizer.address} answers {error}") from error


def _settings(options: RunOptions, info: ServerInfo) -> dict[str, Any]:
    call = options.call
    model = next((m for m in info.models if m.name == call.model), info.models[0] if info.models else None)
    return {
        "server": options.server,
        "server_version": info.version,
        "model": model.name if model else call.model,
        "model_precision": model.precision if model else "",
        "model_device": model.device if model else "",
        "speed": options.play.speed,
        "concurrency": options.play.concurrency,
        "repeat": options.repeat,
        "chunk_ms": options.play.chunk_ms,
        "encoding": call.encoding.value if call.encoding else "as in each file",
        "rate_hz": call.sample_rate_hz or "as in each file",
        "language": call.language_code or "of each recording",
        "denoise": call.denoise.value,
        "num_hints": len(call.hints),
        "hangover_ms": call.hangover_ms or "the profile's",
        "scene_events": call.scene_events,
        "profile": call.profile.name.lower(),
        "reference": str(options.reference) if options.reference else None,
    }


def _write_files(options: RunOptions, summary: Summary, console: Console) -> None:
    if options.events:
        write_events(options.events, summary.traces)
        console.print(f"\nevents: {options.events}", soft_wrap=True)
    if options.report:
        page = write_report(options.report, summary)
        console.print(f"\nreport: {page}", soft_wrap=True)


def main() -> None:
    """Entry point of the `talkpath-replay` command."""
    app()
