"""What a path finds in a record, and how two values compare.

Keys, values and headers are bytes. A path with steps (`value.total`) reads them as JSON; where there is no such thing,
or no JSON at all, it finds null. Bytes compare with a text as UTF-8, and with a number if they are one. The values of
JSON compare with their own kind only: `value.id == 7` is not true of "7".
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple, Protocol

MOST_FOUND: Final = 1000  # values that one path with [*] finds in a record
_NUMBER: Final = re.compile(rb"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")


class Filtered(Protocol):
    """What a filter reads of a record."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> list[tuple[str, bytes | None]]: ...


class Limits(NamedTuple):
    """What one record may cost; 0: anything."""

    json_bytes: int = 0  # longer texts are not parsed
    match_steps: int = 0  # instructions of a regular expression times bytes of the text


class Unread:
    """Stands for JSON that was not parsed yet."""


UNREAD: Final = Unread()


class Scope:
    """One record, whose JSON is parsed once."""

    __slots__ = ("_json", "_limits", "_steps", "partition", "record", "too_long")

    def __init__(self, record: Filtered, partition: int, limits: Limits) -> None:
        self.record = record
        self.partition = partition
        self._limits = limits
        self._json: dict[str, Any] = {}
        self._steps = 0
        self.too_long = False  # something was not read, because it is too long

    def json(self, name: str, data: bytes | None) -> Any:
        found = self._json.get(name, UNREAD)
        if found is UNREAD:
            found = self._json[name] = self._parse(data)
        return found

    def _parse(self, data: bytes | None) -> Any:
        if data is None:
            return None
        if self._limits.json_bytes and len(data) > self._limits.json_bytes:
            self.too_long = True
            return None
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return None

    def may_match(self, steps: int) -> bool:
        """Whether a regular expression may take so many steps more."""
        self._steps += steps
        if self._limits.match_steps and self._steps > self._limits.match_steps:
            self.too_long = True
            return False
        return True


class Step(NamedTuple):
    name: str | None = None  # of a field
    number: int | None = None  # of an element of a list; both None: every element


class Path(NamedTuple):
    root: str  # any, key, value, headers, partition, offset, timestamp or size
    steps: tuple[Step, ...] = ()

    def find(self, scope: Scope) -> list[Any]:
        """The values there, usually one; null is None."""
        record = scope.record
        if self.root in ("key", "value"):
            data = record.key if self.root == "key" else record.value
            return descend([scope.json(self.root, data)], self.steps) if self.steps else [data]
        if self.root == "headers":
            wanted = self.steps[0].name
            named = [value for name, value in record.headers if name == wanted]
            if len(self.steps) == 1:
                return named[:MOST_FOUND] or [None]
            parsed = [scope.json(f"{number} {wanted}", value) for number, value in enumerate(named[:MOST_FOUND])]
            return descend(parsed, self.steps[1:])
        if self.root == "any":
            return [record.key, record.value, *(part for header in record.headers for part in header)]
        if self.root == "partition":
            return [scope.partition]
        if self.root == "offset":
            return [int(record.offset)]
        if self.root == "timestamp":
            return [int(record.timestamp)]
        return [len(record.key or b"") + len(record.value or b"")]


def descend(found: list[Any], steps: tuple[Step, ...]) -> list[Any]:
    for step in steps:
        following: list[Any] = []
        for each in found:
            if step.name is not None:
                following.append(each.get(step.name) if isinstance(each, dict) else None)
            elif step.number is None:
                following += each[: MOST_FOUND - len(following)] if isinstance(each, list) else []
            else:
                there = isinstance(each, list) and -len(each) <= step.number < len(each)
                following.append(each[step.number] if there else None)
        found = following
    return found


def as_bytes(value: Any) -> bytes | None:
    if isinstance(value, bytes):
        return value
    return value.encode(errors="surrogatepass") if isinstance(value, str) else None


def as_number(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value if value == value else None  # NaN is no number
    if isinstance(value, bytes) and _NUMBER.fullmatch(value):
        return int(value) if value.lstrip(b"+-").isdigit() else float(value)
    return None


def is_equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    for here, there in ((one, other), (other, one)):
        if isinstance(here, bool):
            return there is here or there == (b"true" if here else b"false")
    if isinstance(one, int | float) or isinstance(other, int | float):
        number = as_number(one)
        return number is not None and number == as_number(other)
    mine = as_bytes(one)
    return mine is not None and mine == as_bytes(other)


def order(one: Any, other: Any) -> int | None:
    """Below 0 if the first comes first; None if the two have no order."""
    if isinstance(one, int | float) or isinstance(other, int | float):
        number, of_other = as_number(one), as_number(other)
        if number is None or of_other is None:
            return None
        return (number > of_other) - (number < of_other)
    mine, others = as_bytes(one), as_bytes(other)
    return None if mine is None or others is None else (mine > others) - (mine < others)


def has(whole: Any, part: Any) -> bool:
    """A text has a part; a list has an element."""
    if isinstance(whole, list):
        return any(is_equal(each, part) for each in whole[:MOST_FOUND])
    mine, others = as_bytes(whole), as_bytes(part)
    return mine is not None and others is not None and others in mine
