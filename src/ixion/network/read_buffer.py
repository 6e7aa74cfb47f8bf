"""Where the bytes of all connections come in: one buffer, since the loop reads from one socket at a time.

The loop asks for a place to put bytes before it reads, so that we decide how many it may take. A connection that waits
for memory or for an answer gets a narrow one: what its client sends beyond that stays in the socket.
"""

from __future__ import annotations

from typing import Final

WIDE: Final = 1 << 18  # bytes that one read may bring, as with uvloop's own buffer
NARROW: Final = 4096
# Bytes that a client may send ahead of an answer before we stop reading. While we read we notice that it has gone.
AHEAD: Final = 16_384


class ReadBuffer:
    def __init__(self) -> None:
        self.wide: Final = memoryview(bytearray(WIDE))
        self.narrow: Final = self.wide[:NARROW]
