"""One message in one version: the whole of a frame's body, or of a stored record."""

from __future__ import annotations

from ixion._native import i64
from ixion.protocol.codec.cursor import ELEMENT_BUDGET, Cursor
from ixion.protocol.codec.sink import Part, Sink
from ixion.protocol.codec.structure import Structure
from ixion.protocol.flaws import DecodeError, EncodeError


class MessageCodec:
    def __init__(self, name: str, version: int, structure: Structure) -> None:
        self.name = name
        self.version = version
        self.structure = structure

    def decode(self, data: bytes, start: i64 = 0, end: i64 = -1, budget: i64 = ELEMENT_BUDGET) -> object:
        """The value in `data[start:end]`, which it must fill; `end` -1 is the end of `data`."""
        return self.decode_prefix(data, start, end, budget, True)[0]

    def decode_prefix(
        self, data: bytes, start: i64 = 0, end: i64 = -1, budget: i64 = ELEMENT_BUDGET, whole: bool = False
    ) -> tuple[object, i64]:
        """The value at `start`, and where it ends: for headers, which something follows."""
        size: i64 = len(data)
        if end < 0:
            end = size
        if start < 0 or start > end or end > size:
            raise ValueError(f"no frame at {start} to {end} in {size} bytes")
        cursor = Cursor(data, start, end, budget)
        try:
            self.structure.check(cursor)
            if whole and cursor.pos != end:
                cursor.fail(f"{end - cursor.pos} bytes left over")
        except DecodeError as error:
            error.of(self.name, self.version)
            raise
        cursor.pos = start
        return self.structure.read(cursor), cursor.pos

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
        """Buffers to send one after the other. Large record data is among them as it was given, uncopied."""
        sink = Sink()
        self.write(sink, value)
        return sink.finish()
