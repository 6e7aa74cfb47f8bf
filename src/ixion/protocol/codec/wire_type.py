"""What every type of the protocol can do: check bytes, read them, write a value.

A type that may hold an array is not `flat`, and can do all of this in steps as well: as generators that yield after
every `STEP` elements. The caller gives the loop its turn in between (`ixion.timer.turns`). They take twice
the time, so they are for messages that have very many elements.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from ixion._native import i64
from ixion.protocol.codec.cursor import Cursor
from ixion.protocol.codec.sink import Sink

STEP: Final = 64  # elements; some 20 µs compiled


class WireType:
    """`min_size` is the size of the shortest value; `fixed` says that all values have it and no bytes are illegal."""

    def __init__(self, min_size: i64, fixed: bool, flat: bool = True) -> None:
        self.min_size: i64 = min_size
        self.fixed = fixed
        self.flat = flat

    def check(self, cursor: Cursor) -> None:
        """Pass over one value, or fail. Allocates nothing that stays."""
        cursor.skip(self.min_size)

    def read(self, cursor: Cursor) -> object:
        """Build one value that `check` has passed."""
        raise NotImplementedError

    def write(self, sink: Sink, value: object) -> None:
        raise NotImplementedError

    def check_steps(self, cursor: Cursor) -> Generator[None, None, None]:
        raise NotImplementedError

    def read_steps(self, cursor: Cursor) -> Generator[None, None, object]:
        raise NotImplementedError

    def write_steps(self, sink: Sink, value: object) -> Generator[None, None, None]:
        raise NotImplementedError
