"""The command `talkpath-server`."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from pipeline.errors import TalkpathError
from server.logs import configure_logging
from server.settings import Settings, load_settings, render_toml

_STARTUP_FAILED = 2

_cli = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@_cli.command()
def _command(
    config: Annotated[Path | None, typer.Option(help="Settings in TOML.", metavar="FILE")] = None,
    listen: Annotated[str | None, typer.Option(help="Port 0 picks a free one.", metavar="HOST:PORT")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="May be given several times; the first is the default.", metavar="NAME")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", help="Any setting.", metavar="SECTION.KEY=VALUE")
    ] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Show the settings in force and exit.")] = False,
) -> None:
    """Serves speech recognition for telephone calls over gRPC."""
    try:
        settings = load_settings(config, _overrides(listen, model, override))
        exit_code = _print(settings) if print_config else _serve(settings)
    except TalkpathError as error:
        typer.echo(f"talkpath-server: {error}", err=True)
        exit_code = _STARTUP_FAILED
    raise typer.Exit(exit_code)


def _overrides(listen: str | None, model: list[str] | None, override: list[str] | None) -> list[str]:
    overrides = [] if listen is None else [f"server.listen={listen}"]
    if model:
        overrides.append(f"models.names={json.dumps(model)}")
    return overrides + (override or [])


def _print(settings: Settings) -> int:
    typer.echo(render_toml(settings), nl=False)
    return 0


def _serve(settings: Settings) -> int:
    # Imported when there is something to serve: it brings grpc and the codecs of all rooms.
    from server.app import run

    configure_logging(settings.telemetry)
    return asyncio.run(run(settings, lambda address: typer.echo(f"talkpath-server listening on {address}")))


def main() -> None:
    """Runs the command."""
    _cli()
