"""Values with a length in front: strings, bytes, record data.

Classic versions write the length as int16 (strings) or int32 (the rest), -1 for null. Flexible versions write it as an
unsigned varint of length + 1, 0 for null: "ab" is 00 02 61 62, or compact 03 61 62.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be, write_i16_be, write_i32_be

from ixion._native import i16, i32, i64
from ixion.language.protocol.codec.cursor import Cursor
from ixion.language.protocol.codec.sink import Deferred, Part, Sink
from ixion.language.protocol.codec.wire_type import WireType
from ixion.language.protocol.flaws import EncodeError

COMPACT: Final = 0  # a varint; the other two prefixes are given by their size in bytes
SHORT: Final = 2
LONG: Final = 4

STRING_LIMIT: Final = 32767  # bytes; a compact string could be longer, but Kafka refuses it too
LENGTH_LIMIT: Final = (1 << 31) - 2


class Sized(WireType):
    def __init__(self, prefix: i64, nullable: bool, flat: bool = True) -> None:
        super().__init__(prefix if prefix else 1, False, flat)
        self.prefix: i64 = prefix
        self.nullable = nullable

    def length(self, cursor: Cursor) -> i64:
        """Read the length in front; -1 for a null that is allowed."""
        prefix = self.prefix
        size: i64
        if prefix == COMPACT:
            size = cursor.uvarint() - 1
        else:
            cursor.skip(prefix)
            if prefix == SHORT:
                size = i64(read_i16_be(cursor.data, cursor.pos - 2))
            else:
                size = i64(read_i32_be(cursor.data, cursor.pos - 4))
        if size < 0:
            if size < -1:
                cursor.fail(f"length {size}")
            if not self.nullable:
                cursor.fail("null where no null is allowed")
        return size

    def write_length(self, sink: Sink, size: i64) -> None:
        prefix = self.prefix
        if prefix == COMPACT:
            sink.uvarint(size + 1)
        elif prefix == SHORT:
            write_i16_be(sink.out, i16(size))
        else:
            write_i32_be(sink.out, i32(size))

    def write_null(self, sink: Sink) -> None:
        if not self.nullable:
            raise EncodeError("null where no null is allowed")
        self.write_length(sink, -1)


class String(Sized):
    def check(self, cursor: Cursor) -> None:
        size = self.length(cursor)
        if size > STRING_LIMIT:
            cursor.fail(f"a string of {size} bytes; the protocol allows {STRING_LIMIT}")
        if size > 0:
            cursor.check_text(size)

    def read(self, cursor: Cursor) -> object:
        size = self.length(cursor)
        return None if size < 0 else cursor.text(size)

    def write(self, sink: Sink, value: object) -> None:
        if value is None:
            self.write_null(sink)
            return
        if not isinstance(value, str):
            raise EncodeError(f"{value!r} is not a string")
        try:
            text = value.encode()
        except UnicodeEncodeError as error:
            raise EncodeError(f"{value!r} has no UTF-8 form") from error
        if len(text) > STRING_LIMIT:
            raise EncodeError(f"a string of {len(text)} bytes; the protocol allows {STRING_LIMIT}")
        self.write_length(sink, len(text))
        sink.out.write(text)


class Bytes(Sized):
    """Decodes to a copy, which may outlive the frame."""

    def check(self, cursor: Cursor) -> None:
        size = self.length(cursor)
        if size > 0:
            cursor.skip(size)

    def read(self, cursor: Cursor) -> object:
        size = self.length(cursor)
        return None if size < 0 else cursor.chunk(size)

    def write(self, sink: Sink, value: object) -> None:
        if value is None:
            self.write_null(sink)
            return
        if isinstance(value, bytes):
            self._write_part(sink, value, len(value))
        elif isinstance(value, memoryview):
            self._write_part(sink, value, value.nbytes)
        elif isinstance(value, bytearray):
            self._write_part(sink, value, len(value))
        elif isinstance(value, Deferred):
            self._write_part(sink, value, value.size)
        else:
            raise EncodeError(f"{type(value).__name__} is not bytes")

    def _write_part(self, sink: Sink, part: Part, size: i64) -> None:
        if size > LENGTH_LIMIT:
            raise EncodeError(f"{size} bytes are too many for a length of 32 bits")
        self.write_length(sink, size)
        sink.data(part, size)


class Records(Bytes):
    """Record batches: decodes to a view into the frame."""

    def read(self, cursor: Cursor) -> object:
        size = self.length(cursor)
        return None if size < 0 else cursor.window(size)
