"""A command as a table: its arguments, its options, and the function that runs it.

Parsing, help and completion (`parse`, `help`, `completion`) look only at these tables, so they cannot disagree. The
tables are cheap to import: a command imports what it needs when it runs. No library is used, because such libraries
take longer to import than a whole command takes to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final


class UsageError(Exception):
    """The command line is wrong; the message says what to write instead. Exit code 2."""


class Exit(Exception):  # noqa: N818 (the end of a command, not an error)
    """The command ends here, with this exit code."""

    def __init__(self, code: int = 0) -> None:
        super().__init__(code)
        self.code = code


LARGEST: Final = (1 << 31) - 1  # the largest 32-bit number of the protocol
LARGEST_OFFSET: Final = (1 << 63) - 1
MILLION: Final = 1_000_000

Kind = Callable[[str], Any]  # from a word to a value; ValueError says what is expected


def text(word: str) -> str:
    return word


def whole(least: int = -LARGEST, most: int = LARGEST) -> Kind:
    """A whole number, of 32 bits unless said otherwise."""

    def read(word: str) -> int:
        try:
            number = int(word)
        except ValueError:
            raise ValueError(f"must be a whole number, not {word!r}") from None
        if number < least:
            raise ValueError(f"must be at least {least}, not {number}")
        if number > most:
            raise ValueError(f"must be at most {most}, not {number}")
        return number

    return read


def number(word: str) -> float:
    """A number of at most a million: a system call waits at most 32 bits of milliseconds, some two million seconds."""
    try:
        found = float(word)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise ValueError(f"must be a number, not {word!r}")
    if abs(found) > MILLION:
        raise ValueError(f"must be at most {MILLION}, not {word}")
    return found


class Option:
    """`name` is the keyword of the function. Without a metavar it is a switch; `negative` turns a switch off."""

    def __init__(
        self,
        name: str,
        flags: str,
        help: str,  # noqa: A002 (what it is called everywhere)
        *,
        metavar: str = "",
        kind: Kind = text,
        default: Any = None,
        many: bool = False,
        environment: str = "",
        negative: str = "",
        complete: str = "",
        hidden: str = "",
        section: str = "Options",
    ) -> None:
        """`flags` and `hidden` (other spellings that help does not show) are separated by spaces; `complete` is the
        kind of words to offer: topic, group, file, or the words themselves with | between them."""
        self.name: Final = name
        self.flags: Final = tuple(flags.split())
        self.hidden: Final = tuple(hidden.split())
        self.help: Final = help
        self.metavar: Final = metavar
        self.kind: Final = kind
        self.default: Any = [] if many else default if metavar else bool(default)
        self.many: Final = many
        self.environment: Final = environment
        self.negative: Final = negative
        self.complete: Final = complete
        self.section: Final = section  # of a help page


class Argument:
    """A positional argument; `many` takes all remaining words."""

    def __init__(
        self,
        name: str,
        metavar: str,
        help: str = "",  # noqa: A002
        *,
        kind: Kind = text,
        required: bool = True,
        many: bool = False,
        complete: str = "",
    ) -> None:
        self.name: Final = name
        self.metavar: Final = metavar
        self.help: Final = help
        self.kind: Final = kind
        self.required: Final = required
        self.many: Final = many
        self.complete: Final = complete


class Command:
    def __init__(
        self,
        name: str,
        summary: str,
        run: Callable[..., None],
        *,
        arguments: tuple[Argument, ...] = (),
        options: tuple[Option, ...] = (),
        details: str = "",
        examples: tuple[str, ...] = (),
        aliases: tuple[str, ...] = (),
    ) -> None:
        self.name: Final = name
        self.summary: Final = summary
        self.run: Final = run
        self.arguments: Final = arguments
        self.options: Final = options
        self.details: Final = details
        self.examples: Final = examples
        self.aliases: Final = aliases


class Group:
    """Commands under one word, in the order of use."""

    def __init__(self, name: str, summary: str, *commands: Command) -> None:
        self.name: Final = name
        self.summary: Final = summary
        self.commands: Final = commands

    def find(self, word: str) -> Command | None:
        for command in self.commands:
            if word == command.name or word in command.aliases:
                return command
        return None


def nearest(word: str, known: list[str]) -> str:
    """`; did you mean …?`, if a similar word is known; the dashes of options are ignored."""
    from difflib import get_close_matches  # slow to import, and needed only for misspelt words

    bare = {each.lstrip("-"): each for each in known}
    near = get_close_matches(word.lstrip("-"), bare, n=1, cutoff=0.65)
    return f"; did you mean {bare[near[0]]!r}?" if near else ""
