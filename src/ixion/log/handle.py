"""An open file that closes itself when the last one who looks at it has gone.

A fetch may still be sending bytes from a segment (sendfile) when retention deletes it or compaction replaces it.
Whoever needs the file keeps the handle; the name may vanish meanwhile, the bytes stay until the handle does.
"""

from __future__ import annotations

import os
from typing import Final


class Handle:
    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd: Final = fd

    def __del__(self) -> None:
        os.close(self.fd)


class FileSlice:
    """Bytes [position, position + size) of an open file, ready for sendfile. Keep it until they are sent."""

    __slots__ = ("handle", "position", "size")

    def __init__(self, handle: Handle, position: int, size: int) -> None:
        self.handle: Final = handle
        self.position: Final = position
        self.size: Final = size

    @property
    def fd(self) -> int:
        return self.handle.fd

    def read(self) -> bytes:
        return os.pread(self.handle.fd, self.size, self.position)
