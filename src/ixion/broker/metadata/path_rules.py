"""The rules for paths such as `/brokers/ids/1`. They are ZooKeeper's, so that a tree fits both engines."""

from __future__ import annotations

import re
from typing import Final

from ixion.broker.metadata.errors import InvalidPathError

ROOT: Final = "/"

# ZooKeeper refuses these in a name: controls, surrogates (in Java, all beyond U+FFFF), private use, specials.
_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")


def check_path(path: str) -> None:
    if path == ROOT:
        return
    if not path.startswith("/"):
        raise InvalidPathError(path, "a path must start with a slash")
    names = path[1:].split("/")
    if "" in names:
        raise InvalidPathError(path, "a name is empty")
    if "." in names or ".." in names:
        raise InvalidPathError(path, "paths are absolute; . and .. are not names")
    found = _FORBIDDEN.search(path)
    if found:
        raise InvalidPathError(path, f"the character {found[0]!r} is not allowed")


def split(path: str) -> tuple[str, str]:
    """Parent and name: `/a/b` -> (`/a`, `b`), `/a` -> (`/`, `a`). The root has neither: (``, ``)."""
    parent, _, name = path.rpartition("/")
    if not name:
        return "", ""
    return parent or ROOT, name


def join(parent: str, name: str) -> str:
    return f"/{name}" if parent == ROOT else f"{parent}/{name}"
