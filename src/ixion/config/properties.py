r"""Java's properties format, used by server.properties and meta.properties.

    # a comment, and so is a line that starts with !
    key=value        key: value        key value        # three spellings of the same
    listeners = PLAINTEXT://127.0.0.1:9092,\
                CONTROL://127.0.0.1:9093                # continued; the blanks in front are not part of it
    path=C:\\data\u0020x                                # escapes: \\ \t \n \r \f \: \= \# \! and \uXXXX

The first unescaped `=`, `:` or blank ends the key. A comment has a line of its own; blanks at the end of a value belong
to it. If a key comes twice, the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_BLANKS: Final = " \t\f"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    return {_unescape(key): _unescape(value) for key, value in map(_split, _logical_lines(text))}


def _logical_lines(text: str) -> Iterator[str]:
    lines = iter(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    for natural in lines:
        line = natural.lstrip(_BLANKS)
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip(_BLANKS)
        yield line


def _continues(line: str) -> bool:
    """Whether an odd number of backslashes ends the line; an even number are escaped backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_BLANKS)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANKS)
    return line[:end], value


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            out.append(char)
            continue
        escaped = text[at : at + 1]
        at += 1
        if escaped == "u":
            digits = text[at : at + 4]
            if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise ValueError(f"\\u{digits} in {text!r} is not followed by four hexadecimal digits")
            out.append(chr(int(digits, 16)))
            at += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    joined = "".join(out)
    # Java escapes characters beyond U+FFFF as surrogate pairs: two escapes make one character.
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
