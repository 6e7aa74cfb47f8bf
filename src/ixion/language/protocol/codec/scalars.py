"""Numbers, booleans and ids: a fixed number of bytes, big-endian.

Writing a number out of range, or a value of another type, is an EncodeError. Every bit pattern decodes.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    read_f64_be,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_f64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)

from ixion._native import i16, i32, i64
from ixion.language.protocol.codec.cursor import Cursor
from ixion.language.protocol.codec.sink import Sink
from ixion.language.protocol.codec.wire_type import WireType
from ixion.language.protocol.flaws import EncodeError

UUID_SIZE: Final = 16


def whole(value: object, low: i64, high: i64) -> i64:
    """The integer; EncodeError if it is out of range."""
    if not isinstance(value, int):
        raise EncodeError(f"{value!r} is not an integer")
    try:
        number: i64 = value
    except ValueError:  # only compiled: it does not fit a machine integer
        raise EncodeError(f"{value} is not within {low} to {high}") from None
    if number < low or number > high:
        raise EncodeError(f"{value} is not within {low} to {high}")
    return number


class Boolean(WireType):
    def __init__(self) -> None:
        super().__init__(1, True)

    def read(self, cursor: Cursor) -> object:
        pos = cursor.pos
        cursor.pos = pos + 1
        return cursor.data[pos] != 0

    def write(self, sink: Sink, value: object) -> None:
        if not isinstance(value, bool):
            raise EncodeError(f"{value!r} is not a boolean")
        sink.out.append(1 if value else 0)


class Int8(WireType):
    def __init__(self) -> None:
        super().__init__(1, True)

    def read(self, cursor: Cursor) -> object:
        pos = cursor.pos
        cursor.pos = pos + 1
        byte: i64 = cursor.data[pos]
        return byte if byte < 128 else byte - 256

    def write(self, sink: Sink, value: object) -> None:
        sink.out.append(whole(value, -(1 << 7), (1 << 7) - 1) & 255)


class Int16(WireType):
    def __init__(self) -> None:
        super().__init__(2, True)

    def read(self, cursor: Cursor) -> object:
        pos = cursor.pos
        cursor.pos = pos + 2
        return read_i16_be(cursor.data, pos)

    def write(self, sink: Sink, value: object) -> None:
        write_i16_be(sink.out, i16(whole(value, -(1 << 15), (1 << 15) - 1)))


class UInt16(WireType):
    def __init__(self) -> None:
        super().__init__(2, True)

    def read(self, cursor: Cursor) -> object:
        pos = cursor.pos
        cursor.pos = pos + 2
        return i64(read_i16_be(cursor.data, pos)) & 0xFFFF

    def write(self, sink: Sink, value: object) -> None:
        number = whole(value, 0, (1 << 16) - 1)
        sink.out.append(number >> 8)
        sink.out.append(number & 255)


class Int32(WireType):
    def __init__(self) -> None:
        super().__init__(4, True)

    def read(self, cursor: Cursor) -> object:
        pos = cursor.pos
        cursor.pos = pos + 4
        return read_i32_be(cursor.data, pos)

    def write(self, sink: Sink, value: object) -> None:
        write_i32_be(sink.out, i32(whole(value, -(1 << 31), (1 << 31) - 1)))


class UInt32(WireType):
    def __init__(self) -> None:
        super().__init__(4, True)

    def read(self, cursor: Cursor) -> object:
        pos = cursor.pos
        cursor.pos = pos + 4
        return i64(read_i32_be(cursor.data, pos)) & 0xFFFFFFFF

    def write(self, sink: Sink, value: object) -> None:
        number = whole(value, 0, (1 << 32) - 1)
        write_i32_be(sink.out, i32(number if number < 1 << 31 else number - (1 << 32)))


class Int64(WireType):
    def __init__(self) -> None:
        super().__init__(8, True)

    def read(self, cursor: Cursor) -> object:
        pos = cursor.pos
        cursor.pos = pos + 8
        return read_i64_be(cursor.data, pos)

    def write(self, sink: Sink, value: object) -> None:
        write_i64_be(sink.out, whole(value, -(1 << 63), (1 << 63) - 1))


class Float64(WireType):
    def __init__(self) -> None:
        super().__init__(8, True)

    def read(self, cursor: Cursor) -> object:
        pos = cursor.pos
        cursor.pos = pos + 8
        return read_f64_be(cursor.data, pos)

    def write(self, sink: Sink, value: object) -> None:
        if not isinstance(value, float):
            raise EncodeError(f"{value!r} is not a float")
        write_f64_be(sink.out, value)


class Uuid(WireType):
    """Sixteen bytes, kept as bytes: building a `uuid.UUID` would cost more than the rest of a Fetch request."""

    def __init__(self) -> None:
        super().__init__(UUID_SIZE, True)

    def read(self, cursor: Cursor) -> object:
        return cursor.chunk(UUID_SIZE)

    def write(self, sink: Sink, value: object) -> None:
        if not isinstance(value, bytes) or len(value) != UUID_SIZE:
            raise EncodeError(f"{value!r} is not {UUID_SIZE} bytes")
        sink.out.write(value)
