"""Prepares standard input, output and error for the commands.

A stream that the shell has closed (`>&-`) becomes the null device, because otherwise the next file or socket would get
its number. Text is written as UTF-8 in every locale, as `consume` writes records, so that other commands can read it.
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
    """Drop the buffer of a stream whose reader is gone: it must not fail again when the interpreter ends."""
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
