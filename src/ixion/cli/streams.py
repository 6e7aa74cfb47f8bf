"""Standard input, output and error, as the commands want them, whatever the shell gave.

A stream that the shell has closed (`>&-`) becomes the null device: nothing to read, and what is written is dropped.
Otherwise the next file or socket would get its number. Text is written as UTF-8 in every locale, as `consume` writes
records: what one command prints, another one reads.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


def prepare_streams() -> None:
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = open(0)  # noqa: SIM115 (it is open as long as the process is)
    sys.stdout = in_utf8(sys.stdout, 1)
    sys.stderr = in_utf8(sys.stderr, 2)


def in_utf8(stream: object, number: int) -> io.TextIOWrapper:
    if not isinstance(stream, io.TextIOWrapper):
        stream = open(number, "w")  # noqa: SIM115
    stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream


def drop(stream: TextIO) -> None:
    """The reader has gone. What is still in the buffer must not fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(line: str) -> None:
    """One line on standard error, after what was printed before it; nothing if it cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        drop(sys.stdout)
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        drop(sys.stderr)
