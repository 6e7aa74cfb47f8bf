"""Arrays: a count in front, then the elements. Decoded to tuples."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from ixion._native import i64
from ixion.language.protocol.codec.cursor import Cursor
from ixion.language.protocol.codec.sink import Sink
from ixion.language.protocol.codec.sized import Sized
from ixion.language.protocol.codec.wire_type import STEP, WireType
from ixion.language.protocol.flaws import DecodeError, EncodeError
from ixion.language.protocol.kept import Kept

# Kafka 4.4 reads no array that is longer. (Of tagged fields it reads 10,000 in a structure; ours have five.)
LONGEST: Final = 1_000_000


class Array(Sized):
    def __init__(self, prefix: i64, nullable: bool, element: WireType) -> None:
        super().__init__(prefix, nullable, False)
        self.element = element

    def check(self, cursor: Cursor) -> None:
        count = self.length(cursor)
        if count <= 0:
            return
        element = self.element
        cursor.claim(count, element.min_size)
        if element.fixed:
            cursor.skip(count * element.min_size)
            return
        index: i64 = 0
        try:
            while index < count:
                element.check(cursor)
                index += 1
        except DecodeError as error:
            error.within(f"[{index}]")
            raise

    def read(self, cursor: Cursor) -> object:
        count = self.length(cursor)
        if count < 0:
            return None
        if count == 0:
            return ()
        element = self.element
        if count == 1:
            return (element.read(cursor),)
        items: list[object] = []
        while count > 0:
            items.append(element.read(cursor))
            count -= 1
        return tuple(items)

    def write(self, sink: Sink, value: object) -> None:
        if value is None:
            self.write_null(sink)
            return
        items = items_of(value)
        sink.claim(len(items))
        if type(items) is not tuple and isinstance(items, Kept):
            self.write_kept(sink, items)
            return
        self.write_count(sink, len(items))
        element = self.element
        index: i64 = 0
        try:
            for item in items:
                element.write(sink, item)
                index += 1
        except EncodeError as error:
            error.within(f"[{index}]")
            raise

    def write_count(self, sink: Sink, count: i64) -> None:
        if count > LONGEST:
            raise EncodeError(f"{count} elements, of which Kafka reads at most {LONGEST}")
        self.write_length(sink, count)

    def write_kept(self, sink: Sink, items: Kept[object]) -> None:
        if items.codec is not self:
            alone = Sink()
            self.write(alone, tuple(items))
            items.codec = self
            items.data = alone.finish_bytes()
        sink.data(items.data, len(items.data))

    def check_steps(self, cursor: Cursor) -> Generator[None, None, None]:
        count = self.length(cursor)
        if count <= 0:
            return
        element = self.element
        cursor.claim(count, element.min_size)
        if element.fixed:
            cursor.skip(count * element.min_size)
            return
        index: i64 = 0
        try:
            while index < count:
                if element.flat:
                    element.check(cursor)
                else:
                    yield from element.check_steps(cursor)
                index += 1
                cursor.stride += 1
                if cursor.stride >= STEP:
                    cursor.stride = 0
                    yield
        except DecodeError as error:
            error.within(f"[{index}]")
            raise

    def read_steps(self, cursor: Cursor) -> Generator[None, None, object]:
        count = self.length(cursor)
        if count < 0:
            return None
        element = self.element
        items: list[object] = []
        while count > 0:
            if element.flat:
                items.append(element.read(cursor))
            else:
                item = yield from element.read_steps(cursor)
                items.append(item)
            count -= 1
            cursor.stride += 1
            if cursor.stride >= STEP:
                cursor.stride = 0
                yield
        return tuple(items)

    def write_steps(self, sink: Sink, value: object) -> Generator[None, None, None]:
        if value is None:
            self.write_null(sink)
            return
        items = items_of(value)
        self.write_count(sink, len(items))
        element = self.element
        index: i64 = 0
        try:
            for item in items:
                if element.flat:
                    element.write(sink, item)
                else:
                    yield from element.write_steps(sink, item)
                index += 1
                sink.stride += 1
                if sink.stride >= STEP:
                    sink.stride = 0
                    yield
        except EncodeError as error:
            error.within(f"[{index}]")
            raise


def items_of(value: object) -> tuple[object, ...]:
    if isinstance(value, tuple):
        return value
    if isinstance(value, list):
        return tuple(value)
    raise EncodeError(f"{type(value).__name__} is not a tuple")
