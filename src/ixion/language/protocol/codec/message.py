"""One message in one version: the whole of a frame's body, or of a stored record."""

from __future__ import annotations

from collections.abc import Generator

from ixion._native import i64
from ixion.language.protocol.codec.cursor import AT_ONCE_BUDGET, ELEMENT_BUDGET, Cursor
from ixion.language.protocol.codec.sink import Part, Sink
from ixion.language.protocol.codec.structure import Structure
from ixion.language.protocol.flaws import DecodeError, EncodeError


class MessageCodec:
    def __init__(self, name: str, version: int, structure: Structure) -> None:
        self.name = name
        self.version = version
        self.structure = structure

    def decode(self, data: bytes, start: i64 = 0, end: i64 = -1, budget: i64 = ELEMENT_BUDGET) -> object:
        """The value in `data[start:end]`, all of which it must use; `end` -1 is the end of `data`."""
        return self.decode_prefix(data, start, end, budget, True)[0]

    def decode_prefix(
        self, data: bytes, start: i64 = 0, end: i64 = -1, budget: i64 = ELEMENT_BUDGET, whole: bool = False
    ) -> tuple[object, i64]:
        """The value at `start`, and the index after it: for headers, which a body follows."""
        cursor = cursor_over(data, start, end, budget, False)
        try:
            self.structure.check(cursor)
            if whole and cursor.pos != cursor.end:
                cursor.fail(f"{cursor.end - cursor.pos} bytes left over")
        except DecodeError as error:
            error.of(self.name, self.version)
            raise
        cursor.pos = start
        return self.structure.read(cursor), cursor.pos

    def decode_at_once(self, data: bytes, start: i64, end: i64) -> object:
        """The value at `start`; TooLongError if it has too many elements to decode without a pause."""
        cursor = cursor_over(data, start, end, AT_ONCE_BUDGET, True)
        try:
            self.structure.check(cursor)
        except DecodeError as error:
            error.of(self.name, self.version)
            raise
        cursor.pos = start
        return self.structure.read(cursor)

    def decode_steps(
        self, data: bytes, start: i64, end: i64, budget: i64 = ELEMENT_BUDGET
    ) -> Generator[None, None, tuple[object, int]]:
        """In steps: the value at `start`, and the number of its elements."""
        cursor = cursor_over(data, start, end, budget, False)
        try:
            yield from self.structure.check_steps(cursor)
        except DecodeError as error:
            error.of(self.name, self.version)
            raise
        elements: int = budget - cursor.budget
        cursor.pos = start
        value = yield from self.structure.read_steps(cursor)
        return value, elements

    def write_steps(self, sink: Sink, value: object) -> Generator[None, None, None]:
        try:
            yield from self.structure.write_steps(sink, value)
        except EncodeError as error:
            error.of(self.name, self.version)
            raise

    def write(self, sink: Sink, value: object) -> None:
        try:
            self.structure.write(sink, value)
        except EncodeError as error:
            error.of(self.name, self.version)
            raise

    def encode(self, value: object) -> bytes:
        sink = Sink()
        self.write(sink, value)
        return sink.finish_bytes()

    def encode_parts(self, value: object) -> list[Part]:
        """Buffers to send one after the other. Large record data is passed on without a copy."""
        sink = Sink()
        self.write(sink, value)
        return sink.finish()


def cursor_over(data: bytes, start: i64, end: i64, budget: i64, at_once: bool) -> Cursor:
    """A cursor at the start of `data[start:end]`; `end` -1 is the end of `data`."""
    size: i64 = len(data)
    if end < 0:
        end = size
    if start < 0 or start > end or end > size:
        raise ValueError(f"no frame at {start} to {end} in {size} bytes")
    return Cursor(data, start, end, budget, at_once)
