"""`ixion`: the command line's entry point."""

from __future__ import annotations

import typer

from ixion.cli.dump import dump
from ixion.cli.wheel import wheel

app = typer.Typer(no_args_is_help=True, add_completion=False, help="A Kafka-compatible broker in Python.")


def build_kind() -> str:
    from ixion.timer import mutex

    return "compiled" if not str(mutex.__file__).endswith(".py") else "interpreted"


def print_version(wanted: bool) -> None:
    if wanted:
        from ixion import __version__

        typer.echo(f"ixion {__version__} ({build_kind()})")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False,
        "--version",
        callback=print_version,
        is_eager=True,
        help="Print the version and the kind of build.",
    ),
) -> None:
    """A Kafka-compatible broker in Python."""


app.command()(wheel)
app.command()(dump)


def run() -> None:
    app()
