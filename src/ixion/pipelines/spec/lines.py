"""On which line of a TOML text a key was written. The standard library's reader gives the values but not their places.

    [source]                        ("source",)               line 1
    topics = ["orders"]             ("source", "topics")      line 2
    [[sinks]]                       ("sinks", 0)              line 3
    path = "lake/orders"            ("sinks", 0, "path")      line 4

Only texts that the TOML reader has accepted are scanned, so the scanner need not check anything: it follows strings,
comments and brackets just far enough to know where a statement begins. Keys inside an inline table have no entry of
their own; `line_of` answers with the statement that holds them.
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
    """The line of PATH, or of the nearest thing around it that has one."""
    for length in range(len(path), 0, -1):
        line = lines.get(tuple(path[:length]))
        if line is not None:
            return line
    return None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Headers whole, assignments up to their equals sign, each with its line."""
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
    """a."b c".d as ("a", "b c", "d"), by the TOML reader itself."""
    parts: list[str] = []
    value: object = tomllib.loads(f"{dotted} = 0")
    while isinstance(value, dict):
        (name, value), *_ = value.items()
        parts.append(name)
    return tuple(parts)


def _resolve(parts: Path, counts: Mapping[Path, int]) -> Path:
    """A header below an array of tables means the latest of them: [sinks.upkeep] after the second [[sinks]]."""
    path: Path = ()
    for number, part in enumerate(parts):
        path = (*path, part)
        if path in counts and number < len(parts) - 1:
            path = (*path, counts[path])
    return path
