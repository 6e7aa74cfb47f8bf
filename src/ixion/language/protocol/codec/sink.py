"""Collects encoded bytes: one growing buffer, and record data beside it, uncopied or still in its file."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be

from ixion._native import i32, i64, mypyc_attr, u8
from ixion.language.protocol.flaws import TooLongError

# Bytes. Data of at least this size becomes a separate part, which costs 80 ns. Copying smaller data costs less than
# sending one more buffer.
SPLIT_SIZE: Final = 1024
SIZE_SIZE: Final = 4  # bytes of the size in front of a frame
NO_BUDGET: Final = 1 << 62

Buffer = bytes | bytearray | memoryview


@mypyc_attr(allow_interpreted_subclasses=True)
class Deferred:
    """Bytes that are read when they are sent, piece by piece: a stretch of a file."""

    def __init__(self, size: i64) -> None:
        self.size: i64 = size

    def __len__(self) -> int:
        return self.size

    def read(self, start: i64, size: i64) -> bytes:
        """`size` bytes from `start` on, both within the stretch. KafkaError if they can no longer be read."""
        raise NotImplementedError


Part = Buffer | Deferred


class Sink:
    """Collects one message. The types write to `out`; `parts` holds the finished parts before it.

    With `framed`, four bytes in front stay free for the size, which `finish_frame` writes. With a `budget`, more array
    elements than that raise TooLongError: the message is then written in steps.
    """

    def __init__(self, framed: bool = False, budget: i64 = NO_BUDGET) -> None:
        self.out = BytesWriter()
        self.parts: list[Part] = []
        self.budget: i64 = budget
        self.stride: i64 = 0  # elements since the last step
        if framed:
            write_i32_be(self.out, 0)

    def claim(self, count: i64) -> None:
        self.budget -= count
        if self.budget < 0:
            raise TooLongError

    def uvarint(self, value: i64) -> None:
        out = self.out
        while value > 127:
            out.append((value & 127) | 128)
            value >>= 7
        out.append(value)

    def data(self, part: Part, size: i64) -> None:
        """Add bytes unchanged; large ones are kept by reference until they are sent."""
        if size >= SPLIT_SIZE:
            self.parts.append(self.out.getvalue())
            self.parts.append(part)
            self.out.truncate(0)
        elif isinstance(part, bytes):
            self.out.write(part)
        elif isinstance(part, Deferred):
            self.out.write(part.read(0, size))
        else:
            self.out.write(bytes(part))

    def finish(self) -> list[Part]:
        parts = self.parts
        if len(self.out) or not parts:
            parts.append(self.out.getvalue())
        return parts

    def finish_bytes(self) -> bytes:
        if not self.parts:
            return self.out.getvalue()
        return joined(self.finish())

    def finish_frame(self) -> list[Part]:
        size: i64 = len(self.out) - SIZE_SIZE
        if not self.parts:
            shift: i64 = 24
            for index in range(SIZE_SIZE):
                self.out[index] = u8((size >> shift) & 255)
                shift -= 8
            return self.finish()
        for part in self.parts:
            size += part.nbytes if isinstance(part, memoryview) else len(part)
        head = BytesWriter()
        write_i32_be(head, i32(size))
        first = self.parts[0]
        assert isinstance(first, bytes)  # the bytes of `out` before the first separate part
        head.write(first[SIZE_SIZE:])
        self.parts[0] = head.getvalue()
        return self.finish()


def joined(parts: list[Part]) -> bytes:
    return b"".join([part.read(0, part.size) if isinstance(part, Deferred) else part for part in parts])
