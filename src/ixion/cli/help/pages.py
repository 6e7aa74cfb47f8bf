"""Help pages, made from the tables of the commands, wrapped to the width of the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Final

from ixion.cli.command import Argument, Command, Group, Option

NARROW: Final = 40
WIDE: Final = 100
COLUMN: Final = 30  # where explanations begin at the latest


def terminal_columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def width() -> int:
    return min(max(terminal_columns(), NARROW), WIDE)


def wrap(sentence: str, columns: int) -> list[str]:
    """Lines of at most `columns`; a longer word stays whole."""
    lines: list[str] = []
    line = ""
    for word in sentence.split():
        if line and len(line) + 1 + len(word) > columns:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def rows(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Names and explanations in two columns; a long name stands on a line of its own."""
    at = min(max((len(name) for name, _ in pairs), default=0) + 4, COLUMN, width() * 2 // 5)
    lines = []
    for name, explanation in pairs:
        first, *others = wrap(explanation, width() - at)
        if len(name) + 4 > at:
            lines.append(f"  {name}")
            lines.append(" " * at + first)
        else:
            lines.append(f"  {name}".ljust(at) + first)
        lines += [" " * at + line for line in others]
    return [line.rstrip() for line in lines]


def section(title: str, lines: Iterable[str]) -> list[str]:
    body = list(lines)
    return ["", f"{title}:", *body] if body else []


def command_page(path: str, command: Command) -> str:
    usage = " ".join([path, "[OPTIONS]", *map(argument_usage, command.arguments)])
    lines = [f"Usage: {usage}", "", *wrap(command.summary, width())]
    if command.details:
        lines += [
            "",
            *(line for part in command.details.split("\n") for line in (wrap(part, width()) if part else [""])),
        ]
    explained = [(argument.metavar, argument.help) for argument in command.arguments if argument.help]
    lines += section("Arguments", rows(explained))
    titles = dict.fromkeys(["Options", *(option.section for option in command.options)])
    for title in titles:
        shown = [option_row(option) for option in command.options if option.section == title]
        lines += section(title, rows([*shown, ("-h, --help", "Show this page.")] if title == "Options" else shown))
    lines += section("Examples", (f"  {example}" for example in command.examples))
    if command.aliases:
        others = ", ".join(" ".join([*path.split()[:-1], alias]) for alias in command.aliases)
        lines += ["", *wrap(f"Also: {others}", width())]
    return "\n".join(lines)


def argument_usage(argument: Argument) -> str:
    return argument.metavar if argument.required else f"[{argument.metavar}]"


def option_row(option: Option) -> tuple[str, str]:
    short = [flag for flag in option.flags if not flag.startswith("--")]
    long = [flag for flag in option.flags if flag.startswith("--")]
    if option.negative:
        long.append(option.negative)
    names = ", ".join([*short, *long])
    value = f" {option.metavar}" if option.metavar else ""
    return f"{names if short else '    ' + names}{value}", explanation(option)


def explanation(option: Option) -> str:
    notes = []
    if option.environment:
        notes.append(f"environment: {option.environment}")
    if option.metavar and option.default not in (None, "", []):
        default = f"{option.default:g}" if isinstance(option.default, float) else option.default
        notes.append(f"default: {default}")
    return f"{option.help} [{'; '.join(notes)}]" if notes else option.help


def group_page(path: str, group: Group, options: Sequence[Option]) -> str:
    pairs = [(", ".join([each.name, *each.aliases]), each.summary) for each in group.commands]
    lines = [f"Usage: {path} COMMAND [OPTIONS]", "", *wrap(group.summary, width())]
    lines += section("Commands", rows(pairs))
    lines += section("Options", rows([*map(option_row, options), ("-h, --help", "Show this page.")]))
    return "\n".join(lines)


def root_page(
    summary: str, sections: Sequence[tuple[str, Sequence[tuple[str, str]]]], options: Sequence[Option]
) -> str:
    lines = ["Usage: ixion COMMAND [OPTIONS]", "", *wrap(summary, width())]
    for title, pairs in sections:
        lines += section(title, rows(pairs))
    lines += section(
        "Options",
        rows(
            [
                *map(option_row, options),
                ("    --version", "Print the version and the kind of build."),
                ("-h, --help", "Show this page."),
            ]
        ),
    )
    topics = "ixion help TOPIC explains: formats, offsets, settings, connection, environment, exit-codes."
    return "\n".join([*lines, "", *wrap(topics, width())])
