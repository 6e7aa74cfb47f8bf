"""The interface of every protocol type: check bytes, read them, write a value.

A type that may contain an array is not `flat`, and has these operations as generators too, which yield after every
`STEP` elements. The event loop runs in between (`ixion.timer.turns`). Generators take twice the time, so they are used
only for messages with very many elements.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from ixion._native import i64
from ixion.language.protocol.codec.cursor import Cursor
from ixion.language.protocol.codec.sink import Sink

STEP: Final = 64  # elements; some 20 µs compiled


class WireType:
    """`min_size` is the size of the shortest value. `fixed`: all values have it, and all bytes are valid."""

    def __init__(self, min_size: i64, fixed: bool, flat: bool = True) -> None:
        self.min_size: i64 = min_size
        self.fixed = fixed
        self.flat = flat

    def check(self, cursor: Cursor) -> None:
        """Pass over one value, or fail. Builds no value."""
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
