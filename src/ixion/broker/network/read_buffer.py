"""The one buffer that all connections read into: the loop reads from one socket at a time.

Before it reads, the loop asks for a buffer, so we decide how many bytes it may read. A connection that waits for memory
or for a response gets a narrow buffer; the rest stays in the socket.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from mmap import mmap
from typing import Final

WIDE: Final = 1 << 18  # bytes of one full read, as in uvloop's own buffer
NARROW: Final = 4096
# Bytes that a client may send ahead of a response before we stop reading. While we read, we notice a closed connection.
AHEAD: Final = 16_384


class ReadBuffer:
    def __init__(self) -> None:
        self.wide: Final = memoryview(mmap(-1, WIDE))  # pages that no read has reached take no memory
        self.narrow: Final = self.wide[:NARROW]
