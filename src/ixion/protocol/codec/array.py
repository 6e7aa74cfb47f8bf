"""Arrays: a count in front, then the elements. Decoded to tuples."""

from __future__ import annotations

from ixion._native import i64
from ixion.protocol.codec.cursor import Cursor
from ixion.protocol.codec.sink import Sink
from ixion.protocol.codec.sized import Sized
from ixion.protocol.codec.wire_type import WireType
from ixion.protocol.flaws import DecodeError, EncodeError


class Array(Sized):
    def __init__(self, prefix: i64, nullable: bool, element: WireType) -> None:
        super().__init__(prefix, nullable)
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
        items: tuple[object, ...]
        if isinstance(value, tuple):
            items = value
        elif isinstance(value, list):
            items = tuple(value)
        else:
            raise EncodeError(f"{type(value).__name__} is not a tuple")
        self.write_length(sink, len(items))
        element = self.element
        index: i64 = 0
        try:
            for item in items:
                element.write(sink, item)
                index += 1
        except EncodeError as error:
            error.within(f"[{index}]")
            raise
