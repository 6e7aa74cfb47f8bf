"""The commands, by name, and what becomes of their errors.

A command prints its result on standard output and nothing else; what went wrong goes to standard error in one line that
says what to do. Exit codes: 0 done, 1 failed, 2 wrongly called, 130 interrupted. Who closes the pipe has had enough: no
error.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Final

import typer

from ixion.cli.main import version_line
from ixion.model.errors import KafkaError

# name -> module and the command or group of commands in it; imported when it is called, or for the help of all
COMMANDS: Final = {
    "serve": "ixion.cli.app:serve",
    "topic": "ixion.cli.topic:topic",
    "produce": "ixion.cli.produce:produce",
    "consume": "ixion.cli.consume:consume",
    "config": "ixion.cli.config:config",
    "group": "ixion.cli.group:group",
    "perf": "ixion.cli.perf:perf",
    "pipeline": "ixion.cli.pipeline:app",
    "dump": "ixion.cli.dump:dump",
    "wheel": "ixion.cli.wheel:wheel",
}


def execute(words: list[str]) -> int:
    """Run one command line; the exit code."""
    command = typer.main.get_command(build(words[0] if words else None))
    try:
        with command.make_context("ixion", words) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as ended:
        return ended.exit_code
    except BrokenPipeError:
        drop_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except KafkaError as error:
        print(f"ixion: {error.message}", file=sys.stderr)
        return 1
    except Exception as error:
        explain = getattr(
            error, "format_message", None
        )  # how typer's own errors are told from bugs, in all its versions
        if explain is None:
            raise
        return refuse(error, explain())
    return 0


def refuse(error: Exception, message: str) -> int:
    """Wrongly called: one line, and where to read more. Called with nothing at all, the message is the help itself."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "ixion"
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message)
    else:
        said = " ".join(message.split()).removeprefix("Invalid value: ")
        print(f"{path}: {said} (see {path} --help)", file=sys.stderr)
    return int(getattr(error, "exit_code", 2))


def drop_output() -> None:
    """Nobody reads any more. What is still in the buffer must not fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build(only: str | None = None) -> typer.Typer:
    """The whole command line, or, if `only` names a command, that part of it."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode=None)
    app.callback()(options)
    for name, place in COMMANDS.items():
        if only not in COMMANDS or name == only:
            module, _, attribute = place.partition(":")
            found = getattr(import_module(module), attribute)
            if isinstance(found, typer.Typer):
                app.add_typer(found, name=name)
            else:
                app.command(name)(found)
    return app


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_line())
        raise typer.Exit


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


def serve() -> None:
    """Serve Kafka clients until told to stop."""
    # Listed here, run by `main.run`: importing typer would take longer than the broker needs to start.
    from ixion.cli.serve import main

    raise typer.Exit(main([]))
