"""Reads lines, and parses each into a record.

With a separator for headers and one for keys a line is

    trace=1,user=7<TAB>key<TAB>value

Either separator may be left out, and its part with it. A part that equals the null marker is null.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator

from ixion.cli.record_json import Outgoing

READ_BYTES = 256 * 1024
QUIET_S = 0.005  # after a pause of this length, send the records so far


class LineFormat:
    def __init__(
        self,
        key_separator: bytes | None,
        headers_separator: bytes | None,
        null_marker: str | None,
        key: bytes | None = None,
    ) -> None:
        """`key` is that of every record, without a separator."""
        self._key = key
        self._key_separator = key_separator
        self._headers_separator = headers_separator
        self._null = None if null_marker is None else null_marker.encode()

    def parse(self, line: bytes) -> Outgoing:
        """ValueError if the line lacks a separator."""
        headers: tuple[tuple[str, bytes | None], ...] = ()
        key = self._key
        rest = line
        if self._headers_separator is not None:
            listed, rest = cut(rest, self._headers_separator, "headers")
            headers = tuple(self._header(part) for part in listed.split(b",") if part)
        if self._key_separator is not None:
            found, rest = cut(rest, self._key_separator, "key")
            key = self._or_null(found)
        return Outgoing(key, self._or_null(rest), headers)

    def _header(self, text: bytes) -> tuple[str, bytes | None]:
        name, equals, value = text.partition(b"=")
        if not equals or not name:
            raise ValueError(f"a header is name=value, not {text.decode(errors='replace')!r}")
        return name.decode(errors="replace"), self._or_null(value)

    def _or_null(self, text: bytes) -> bytes | None:
        return None if text == self._null else text


def cut(line: bytes, separator: bytes, what: str) -> tuple[bytes, bytes]:
    before, found, after = line.partition(separator)
    if not found:
        shown = separator.decode(errors="replace")
        raise ValueError(f"there is no {shown!r} between {what} and the rest")
    return before, after


def read_lines(file: int, when_quiet: Callable[[], None], prompt: Callable[[], None]) -> Iterator[bytes]:
    """The lines of an open file, pipe or terminal, without their ends; the last one need not have one.

    `when_quiet` is called when the sender pauses, once a pause; `prompt` before every read.
    """
    begun: list[bytes] = []  # a line without its end yet
    is_quiet = True
    while True:
        if not is_quiet and not select.select([file], [], [], QUIET_S)[0]:
            when_quiet()
            is_quiet = True
        prompt()
        data = os.read(file, READ_BYTES)
        if not data:
            break
        is_quiet = False
        first, *others = data.split(b"\n")
        begun.append(first)
        if others:
            yield b"".join(begun)
            yield from others[:-1]
            begun = [others[-1]]
    if any(begun):
        yield b"".join(begun)
