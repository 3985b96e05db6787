"""The command `talkpath-bench`."""

import sys

import typer

from server.bench.options import EXIT_USAGE


def build_app() -> typer.Typer:
    """Puts the subcommands together."""
    # Imported here, so that a missing package of the extra can be named.
    from server.bench.capacity_command import capacity
    from server.bench.conditions_command import conditions_table
    from server.bench.engine_command import engine
    from server.bench.parity_command import parity
    from server.bench.profile_command import profile

    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        help="Measures engine and server on this machine.",
    )
    for command in (engine, capacity, parity, profile):
        app.command()(command)
    app.command("conditions")(conditions_table)
    return app


def main() -> None:
    """Runs the command."""
    try:
        build_app()()
    except ModuleNotFoundError as error:
        sys.stderr.write(f"talkpath-bench: no module {error.name}; install the extra: pip install 'talkpath[bench]'\n")
        sys.exit(EXIT_USAGE)
