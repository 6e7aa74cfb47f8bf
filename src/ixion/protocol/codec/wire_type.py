"""What every type of the protocol can do: check bytes, read them, write a value."""

from __future__ import annotations

from ixion._native import i64
from ixion.protocol.codec.cursor import Cursor
from ixion.protocol.codec.sink import Sink


class WireType:
    """`min_size` is the size of the shortest value; `fixed` says that all values have it and no bytes are illegal."""

    def __init__(self, min_size: i64, fixed: bool) -> None:
        self.min_size: i64 = min_size
        self.fixed = fixed

    def check(self, cursor: Cursor) -> None:
        """Pass over one value, or fail. Allocates nothing that stays."""
        cursor.skip(self.min_size)

    def read(self, cursor: Cursor) -> object:
        """Build one value that `check` has passed."""
        raise NotImplementedError

    def write(self, sink: Sink, value: object) -> None:
        raise NotImplementedError
