"""JSON in nodes: written without blanks, and validated when read, because other programs may have written it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class CorruptNodeError(Exception):
    """The content of a node is invalid."""


def to_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def from_json(what: str, data: bytes, read: Callable[[dict[str, Any]], T]) -> T:
    """`read` takes the members it needs. If that fails, one error shows the content."""
    try:
        members = json.loads(data)
        if not isinstance(members, dict):
            raise TypeError("not an object")
        return read(members)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptNodeError(f"{what} cannot be read from {data[:200]!r}: {error!r}") from None
