"""Where encoded bytes go: one growing buffer, and record data beside it, uncopied."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from ixion._native import i64

# Record data of this size and more becomes a part of its own. Below, copying is cheaper than one more buffer to send.
SPLIT_SIZE: Final = 4096

Part = bytes | bytearray | memoryview


class Sink:
    """Collects one message. `out` is written directly by the types; `parts` holds what was closed before it."""

    def __init__(self) -> None:
        self.out = BytesWriter()
        self.parts: list[Part] = []

    def uvarint(self, value: i64) -> None:
        out = self.out
        while value > 127:
            out.append((value & 127) | 128)
            value >>= 7
        out.append(value)

    def data(self, part: Part, size: i64) -> None:
        """Bytes that go out as they are; large ones are kept by reference until they are sent."""
        if size >= SPLIT_SIZE:
            self.parts.append(self.out.getvalue())
            self.parts.append(part)
            self.out = BytesWriter()
        elif isinstance(part, memoryview):
            self.out.write(bytes(part))
        else:
            self.out.write(part)

    def finish(self) -> list[Part]:
        parts = self.parts
        if len(self.out) or not parts:
            parts.append(self.out.getvalue())
        return parts

    def finish_bytes(self) -> bytes:
        if not self.parts:
            return self.out.getvalue()
        return b"".join(self.finish())
