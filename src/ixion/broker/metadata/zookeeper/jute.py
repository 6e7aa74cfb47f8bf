"""Jute, ZooKeeper's serialisation: big-endian numbers, and everything else with its length in front.

int 4 bytes · long 8 bytes · bool 1 byte · buffer and string: int length (-1: null), then the bytes · vector: int count
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_NULL: Final = _INT.pack(-1)


class JuteError(ValueError):
    """Invalid jute: the bytes end too early, or a length is impossible."""


def put_int(value: int) -> bytes:
    return _INT.pack(value)


def put_long(value: int) -> bytes:
    return _LONG.pack(value)


def put_bool(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def put_buffer(value: bytes) -> bytes:
    """An empty buffer is written as null: users of ZooKeeper, such as Kafka, expect null for a node without data."""
    return _INT.pack(len(value)) + value if value else _NULL


def put_string(value: str) -> bytes:
    encoded = value.encode()
    return _INT.pack(len(encoded)) + encoded


def put_strings(values: Iterable[str]) -> bytes:
    encoded = [put_string(value) for value in values]
    return _INT.pack(len(encoded)) + b"".join(encoded)


class JuteReader:
    """Reads one packet; every method raises `JuteError` if there are too few bytes."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def _take(self, size: int) -> int:
        start = self._position
        if size < 0 or size > len(self._data) - start:
            raise JuteError(f"{size} bytes expected, {len(self._data) - start} left")
        self._position = start + size
        return start

    def read_int(self) -> int:
        value: int = _INT.unpack_from(self._data, self._take(4))[0]
        return value

    def read_long(self) -> int:
        value: int = _LONG.unpack_from(self._data, self._take(8))[0]
        return value

    def read_bool(self) -> bool:
        return self._data[self._take(1)] != 0

    def buffer(self) -> bytes:
        """Null is read as empty."""
        size = self.read_int()
        if size == -1:
            return b""
        start = self._take(size)
        return self._data[start : start + size]

    def string(self) -> str:
        try:
            return self.buffer().decode()
        except UnicodeDecodeError as error:
            raise JuteError(f"a string is not UTF-8: {error}") from error

    def strings(self) -> list[str]:
        count = self.read_int()
        if count > self.left // 4:
            raise JuteError(f"{count} strings cannot be in {self.left} bytes")
        return [self.string() for _ in range(count)]
