"""From the words of a command line to the values that a command is called with.

Options may be anywhere: `--name value`, `--name=value`, `-n value`, `-nvalue`, switches together as `-ef`; `--` ends
them. A value may begin with a dash (`--offset -10`). The options of `COMMON` may also come before the command.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

from ixion.cli.command import Argument, Command, Option, UsageError, nearest

HELP = Option("help", "--help -h", "Show this page.")


def parse(command: Command, words: list[str], given: dict[str, Any]) -> dict[str, Any]:
    """The keywords of the command's function; `given` came before the command. `help` is True if --help is given."""
    values, places = read_options((*command.options, HELP), words)
    if values.get("help"):
        return {"help": True}
    for name in given:
        if not any(option.name == name for option in command.options):
            raise UsageError(f"there is no option --{name} for this command")
    found = {option.name: default_of(option) for option in command.options}
    return {**found, **read_arguments(command.arguments, places), **given, **values}


def read_options(
    options: Sequence[Option], words: list[str], *, stop_at_word: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """The given values, and the words that are not options; `stop_at_word` leaves everything from the first such word
    on."""
    flags = {flag: option for option in options for flag in (*option.flags, *option.hidden)}
    negatives = {option.negative: option for option in options if option.negative}
    values: dict[str, Any] = {}
    places: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            places += left
            break
        if len(word) < 2 or not word.startswith("-") or is_negative(word, flags):
            places.append(word)
            if stop_at_word:
                places += left
                break
            continue
        if word in negatives:
            values[negatives[word].name] = False
            continue
        flag, equals, value = word.partition("=")
        if not word.startswith("--"):
            flag, equals, value = split_short(word, flags, left)
        option = flags.get(flag)
        if option is None:
            unknown(flag, [*flags, *negatives])
        if not option.metavar:
            if equals:
                raise UsageError(f"{flag} takes no value")
            values[option.name] = True
            continue
        if not equals:
            if not left:
                raise UsageError(f"{flag} needs a value: {option.metavar}")
            value = left.pop(0)
        read = convert(option, flag, value)
        values[option.name] = [*values.get(option.name, []), read] if option.many else read
    return values, places


def split_short(word: str, flags: dict[str, Option], left: list[str]) -> tuple[str, str, str]:
    """`-n5` is -n with a value; `-ef` is -e, and -f is put back."""
    flag, rest = word[:2], word[2:]
    option = flags.get(flag)
    if option is None or not rest:
        return flag, "", ""
    if option.metavar:
        return flag, "=", rest.removeprefix("=")
    left.insert(0, f"-{rest}")
    return flag, "", ""


def is_negative(word: str, flags: dict[str, Option]) -> bool:
    """-10 is a number unless there is an option -1."""
    return word[1:].isdigit() and word[:2] not in flags


def unknown(flag: str, known: list[str]) -> NoReturn:
    raise UsageError(f"there is no option {flag}{nearest(flag, known)}")


def convert(option: Option, flag: str, value: str) -> Any:
    try:
        return option.kind(value)
    except ValueError as error:
        raise UsageError(f"{flag} {error}") from None


def default_of(option: Option) -> Any:
    if option.environment and os.environ.get(option.environment):
        return convert(option, option.environment, os.environ[option.environment])
    return list(option.default) if option.many else option.default


def read_arguments(arguments: Sequence[Argument], words: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    left = list(words)
    for argument in arguments:
        if argument.many:
            taken, left = left, []
        else:
            taken, left = left[:1], left[1:]
        if argument.required and not taken:
            raise UsageError(f"{argument.metavar} is missing")
        try:
            read = [argument.kind(word) for word in taken]
        except ValueError as error:
            raise UsageError(f"{argument.metavar} {error}") from None
        values[argument.name] = read if argument.many else read[0] if read else None
    if left:
        raise UsageError(f"{left[0]!r} is one word too many")
    return values
