"""The commands, by name, and how their errors are shown.

A command prints only its result on standard output; an error goes to standard error, as one line that says what to do.
Exit codes: 0 done, 1 failed, 2 usage error, 130 interrupted, 143 terminated. A reader that closes the pipe is no error.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any, Final

from ixion.cli.access import BOOTSTRAP, CLUSTER, PROFILE, TIMEOUT, fold
from ixion.cli.command import Command, Exit, Group, Option, UsageError, nearest
from ixion.cli.interrupt import exit_code
from ixion.cli.parse import HELP, parse, read_options
from ixion.cli.streams import complain, drop
from ixion.language.model.errors import KafkaError

SUMMARY: Final = "A Kafka-compatible broker in Python, and the tools to work with one."
COMMON: Final = CLUSTER  # may stand before the command as well
SHOWN: Final = (BOOTSTRAP, TIMEOUT, PROFILE)  # of those, on pages about many commands

# In the order of use. name -> the table, imported when it is called, and its summary
SECTIONS: Final = (
    ("Run a broker", (("serve", "ixion.cli.serve.commands:SERVE", "Serve Kafka clients until SIGTERM or Ctrl-C."),)),
    (
        "Work with a cluster",
        (
            ("topic", "ixion.cli.topic.commands:TOPIC", "Create, list, describe, alter and delete topics."),
            ("produce", "ixion.cli.produce.commands:PRODUCE", "Send a record per line of standard input or files."),
            ("consume", "ixion.cli.consume.commands:CONSUME", "Print the records of topics."),
            ("read", "ixion.cli.read.commands:READ", "Write the records of a topic into a Parquet, Arrow or CSV file."),
            ("group", "ixion.cli.group.commands:GROUP", "List, describe, reset and delete groups."),
            (
                "schedule",
                "ixion.cli.schedule.commands:SCHEDULE",
                "List and cancel records that wait for a later delivery.",
            ),
            ("config", "ixion.cli.config:CONFIG", "Get, set and unset settings."),
            (
                "cluster",
                "ixion.cli.cluster.commands:CLUSTER_GROUP",
                "Start brokers on this machine, show them, move partitions, elect leaders.",
            ),
            ("transaction", "ixion.cli.transaction:TRANSACTION", "List, describe and abort transactions."),
            ("user", "ixion.cli.user.commands:USER", "Add, list and remove users that log in."),
            ("token", "ixion.cli.token:TOKEN", "Create, list, renew and expire delegation tokens."),
            ("acl", "ixion.cli.acl:ACL", "Add, list, remove and check access rules."),
        ),
    ),
    (
        "Move and measure",
        (
            ("pipeline", "ixion.cli.pipeline.commands:PIPELINE", "From a topic to a table, exactly once, on Spark."),
            ("perf", "ixion.cli.perf.commands:PERF", "Measure a cluster under load."),
        ),
    ),
    (
        "Look inside",
        (
            ("dump", "ixion.cli.dump:DUMP", "Show what is in the files of a log directory."),
            ("wheel", "ixion.cli.wheel.commands:WHEEL", "Watch a live timing wheel."),
        ),
    ),
    (
        "Help",
        (
            ("help", "ixion.cli.help.commands:HELP_COMMAND", "Explain a command or a topic."),
            ("completion", "ixion.cli.completion:COMPLETION", "Print the completion script of a shell."),
        ),
    ),
)
COMMANDS: Final = {name: place for _, entries in SECTIONS for name, place, _ in entries}


def execute(words: list[str]) -> int:
    """Run one command line; the exit code."""
    path = ["ixion"]
    code = 0
    try:
        try:
            run([in_utf8(word) for word in words], path)
        except Exit as ended:
            code = ended.code
        sys.stdout.flush()
    except BrokenPipeError:
        drop(sys.stdout)
    except KeyboardInterrupt as error:
        return exit_code(error)
    except KafkaError as error:
        from ixion.cli.needed_rights import missing_right

        complain(f"ixion: {error.message}{missing_right(' '.join(path[1:]), error.code)}")
        return 1
    except UsageError as error:
        where = " ".join(path)
        complain(f"{where}: {error} (see {where} --help)")
        return 2
    except OSError as error:
        if error.filename is None:  # other errors carry a file name; this is about printing
            drop(sys.stdout)
            complain(f"ixion: the output cannot be written: {error.strerror}")
        else:
            complain(f"ixion: {error.filename}: {error.strerror}")
        return 1
    return code


def in_utf8(word: str) -> str:
    """As the user typed it, also where the locale has another encoding."""
    try:
        word.encode()
    except UnicodeEncodeError:
        try:
            return os.fsencode(word).decode()
        except UnicodeError:
            raise UsageError(f"{word!r} is not UTF-8") from None
    return word


def run(words: list[str], path: list[str]) -> None:
    """`path` grows by the words that name the command, for error messages."""
    if words[:1] == ["__complete"]:
        from ixion.cli.completion import complete

        return complete(words[1:])
    if words[:1] == ["--version"]:
        from ixion.cli.main import version_line

        print(version_line())
        return None
    given, words = read_options((*COMMON, HELP), words, stop_at_word=True)
    wants_help = given.pop("help", False)
    if not words or wants_help:
        print_root()
        raise Exit(0 if wants_help else 2)
    found = find(words[0])
    path.append(found.name)
    words = words[1:]
    if isinstance(found, Group):
        more, words = read_options((*COMMON, HELP), words, stop_at_word=True)
        wants_help = more.pop("help", False)
        given.update(more)
        if not words or wants_help:
            from ixion.cli.help.pages import group_page

            print(group_page(" ".join(path), found, common_to(found)))
            raise Exit(0 if wants_help else 2)
        command = found.find(words[0])
        if command is None:
            raise UsageError(f"there is no command {words[0]!r}{nearest(words[0], [c.name for c in found.commands])}")
        path.append(command.name)
        words = words[1:]
    else:
        command = found
    call(command, words, given, path)
    return None


def call(command: Command, words: list[str], given: dict[str, Any], path: list[str]) -> None:
    values = parse(command, words, given)
    if values.get("help") is True and "help" not in {option.name for option in command.options}:
        from ixion.cli.help.pages import command_page

        print(command_page(" ".join(path), command))
        return
    command.run(**(fold(values) if BOOTSTRAP in command.options else values))


def find(name: str) -> Command | Group:
    place = COMMANDS.get(name)
    if place is None:
        raise UsageError(f"there is no command {name!r}{nearest(name, list(COMMANDS))}")
    module, _, attribute = place.partition(":")
    found: Command | Group = getattr(import_module(module), attribute)
    return found


def common_to(group: Group) -> tuple[Option, ...]:
    """The options that may stand before the group's commands."""
    return tuple(option for option in SHOWN if all(option in command.options for command in group.commands))


def print_root() -> None:
    from ixion.cli.help.pages import root_page

    pages = [(title, [(name, summary) for name, _, summary in entries]) for title, entries in SECTIONS]
    print(root_page(SUMMARY, pages, SHOWN))
