"""Finds the line of each key in a TOML text. The standard library's reader gives the values, but no line numbers.

    [source]                        ("source",)               line 1
    topics = ["orders"]             ("source", "topics")      line 2
    [[sinks]]                       ("sinks", 0)              line 3
    path = "lake/orders"            ("sinks", 0, "path")      line 4

Only texts that the TOML reader has accepted are scanned, so the scanner checks nothing: it follows strings, comments
and brackets just far enough to find where a statement begins. Keys inside an inline table have no entry; `line_of`
gives the line of the statement around them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence

Path = tuple[str | int, ...]

# A string of either kind and length, a comment, or one character. The long strings must come first.
_PIECE = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:\\.|[^"\\\n])*"|' + r"'[^'\n]*'|\#[^\n]*|.", re.DOTALL
)


def key_lines(text: str) -> Mapping[Path, int]:
    """The line, from 1, of every table header and every key."""
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    prefix: Path = ()
    for line, statement in _statements(text):
        if statement.startswith("[["):
            table = _resolve(_parts(statement.strip("[] \t")), counts)
            counts[table] = counts.get(table, -1) + 1
            prefix = (*table, counts[table])
        elif statement.startswith("["):
            prefix = _resolve(_parts(statement.strip("[] \t")), counts)
        else:
            found.setdefault((*prefix, *_parts(statement)), line)
            continue
        found.setdefault(prefix, line)
    return found


def line_of(lines: Mapping[Path, int], path: Sequence[str | int]) -> int | None:
    """The line of PATH, or of the nearest key or table around it."""
    for length in range(len(path), 0, -1):
        line = lines.get(tuple(path[:length]))
        if line is not None:
            return line
    return None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Whole headers, and assignments up to their equals sign, each with its line."""
    line = 1
    depth = 0  # of brackets in a value
    started = 0
    words: list[str] = []
    in_value = False
    for match in _PIECE.finditer(text + "\n"):
        piece = match[0]
        if not in_value and piece == "=" and not "".join(words).lstrip().startswith("["):
            yield started, "".join(words).strip()
            words, in_value = [], True
        elif in_value:
            depth += (piece in "[{") - (piece in "]}") if len(piece) == 1 else 0
            in_value = depth > 0 or piece != "\n"
        elif piece == "\n":
            if header := "".join(words).strip():
                yield started, header
            words = []
        elif not piece.startswith("#"):
            if not "".join(words).strip():
                started = line
            words.append(piece)
        line += piece.count("\n")


def _parts(dotted: str) -> Path:
    """("a", "b c", "d") for a."b c".d; the TOML reader splits it."""
    parts: list[str] = []
    value: object = tomllib.loads(f"{dotted} = 0")
    while isinstance(value, dict):
        (name, value), *_ = value.items()
        parts.append(name)
    return tuple(parts)


def _resolve(parts: Path, counts: Mapping[Path, int]) -> Path:
    """A header below an array of tables belongs to the last table: [sinks.upkeep] to the [[sinks]] before it."""
    path: Path = ()
    for number, part in enumerate(parts):
        path = (*path, part)
        if path in counts and number < len(parts) - 1:
            path = (*path, counts[path])
    return path
