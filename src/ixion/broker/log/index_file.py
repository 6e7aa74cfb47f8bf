"""A file of packed entries of one size, the body of the offset, the time and the transaction index.

The index of the active segment is in memory, in the format of the file, so that an append makes no system call for it.
`write` writes new entries to the file at a roll, at a flush and at a clean close. This happens before the recovery
point passes the entries, so entries lost in a crash are rebuilt from the log. When the segment is sealed, the bytes are
dropped; the next lookup reads the file and keeps it until the segment is idle.

Apache Kafka allocates index files at their full size and trims them when a segment is sealed. Ours always have the size
of their entries, which Kafka's loader accepts too.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import os

from ixion.broker.log.corrupt import DamagedIndexError
from ixion.broker.log.files import Files
from ixion.broker.log.handle import Handle
from ixion.broker.log.names import parse_file_name


class IndexFile:
    __slots__ = ("_buffer", "_clean", "_loaded", "_on_disk", "_unsynced", "count", "entry_size", "files", "path")

    def __init__(self, files: Files, path: str, entry_size: int, size: int) -> None:
        """`size` is the length of the file; -1 if there is none yet."""
        self.files = files
        self.path = path
        self.entry_size = entry_size
        self.count = size // entry_size if size > 0 else 0
        self._on_disk = size
        self._clean = self.count * entry_size  # the first bytes of the file, which equal those in memory
        self._buffer: bytearray | None = None if self.count else bytearray()
        self._loaded: bytes | None = None  # the content of a file that no longer changes
        self._unsynced = False  # written since the last `take_unsynced`

    @property
    def is_on_disk(self) -> bool:
        return self._on_disk >= 0

    @property
    def has_remainder(self) -> bool:
        """Whether the file ends within an entry."""
        return self._on_disk > 0 and self._on_disk % self.entry_size != 0

    def view(self) -> bytes | bytearray:
        """The bytes of all entries."""
        if self._buffer is not None:
            return self._buffer
        if self._loaded is None:
            self._loaded = self._read(self.count * self.entry_size, 0)
        return self._loaded

    def entry(self, slot: int) -> bytes:
        """One entry. If the file is not loaded, only this entry is read, so that opening a log is cheap."""
        start = slot * self.entry_size
        if self._buffer is not None or self._loaded is not None:
            return bytes(self.view()[start : start + self.entry_size])
        return self._read(self.entry_size, start)

    def _read(self, size: int, position: int) -> bytes:
        try:
            fd = self.files.open_to_read(self.path)
        except FileNotFoundError:
            raise self.damaged("the file is missing") from None
        try:
            data = self.files.read(fd, size, position)
        finally:
            self.files.close(fd)
        if len(data) < size:
            raise self.damaged(f"the file is shorter than its {self.count} entries")
        return data

    def damaged(self, reason: str) -> DamagedIndexError:
        parsed = parse_file_name(os.path.basename(self.path))
        return DamagedIndexError(self.path, parsed[0] if parsed is not None else -1, reason)

    def append(self, entry: bytes) -> None:
        buffer = self.load()
        buffer += entry
        self.count += 1

    def cut(self, count: int) -> None:
        """Keeps the first `count` entries."""
        if count < self.count:
            buffer = self.load()
            size = count * self.entry_size
            del buffer[size:]
            self.count = count
            self._clean = min(self._clean, size)

    def write(self) -> bool:
        """Writes new entries to the file. True if this created the file, so that its folder must be synced.

        If it fails, the next call writes the same entries again.
        """
        buffer = self._buffer
        if buffer is None or self._clean == self._on_disk == len(buffer):
            return False
        self._unsynced = True
        is_new = self._on_disk < 0
        fd = self.files.open(self.path)
        try:
            if self._on_disk > self._clean:
                self.files.truncate(fd, self._clean)
            self._on_disk = len(buffer)  # or less, if the write fails halfway: the next write trims the file first
            if len(buffer) > self._clean:
                self.files.write(fd, self._clean, [bytes(buffer[self._clean :])])
            self._clean = len(buffer)
        finally:
            self.files.close(fd)
        return is_new

    def replace(self, sync: bool) -> None:
        """Makes the content of the file equal to the entries in memory.

        After a crash the file mostly has the first of them already, and reading it is much cheaper than writing a new
        one, so that comes first. If it only lacks entries at its end, they are added as `write` does: the recovery
        point is before them, so a start after another crash rebuilds them. With `sync`, and if other bytes are there,
        the file is replaced in one step. If the process is killed, the old or the new file stays. It must not be an
        empty one: a later start would not see that entries are missing.
        """
        content = bytes(self.load())
        self._unsynced = True
        found = self._read_start(len(content) + 1)
        if found is not None and (found == content or (not sync and content.startswith(found))):
            self._clean = self._on_disk = len(found)
            self.write()
            return
        self.files.replace_content(self.path, content, sync)
        self._unsynced = not sync
        self._clean = self._on_disk = len(content)

    def stage(self) -> None:
        """Writes the entries in memory, durably, to a temporary file; `unveil` renames it. Blocks."""
        content = bytes(self.load())
        staged = Handle(self.files, self.files.open(self._staged))
        try:
            staged.truncate(0)
            if content:
                staged.write(0, [content])
            staged.sync()
        except OSError:
            self.files.remove(self._staged)  # the disk may be full
            raise
        self._clean = self._on_disk = len(content)

    def unveil(self) -> None:
        self.files.rename(self._staged, self.path)

    @property
    def _staged(self) -> str:
        return self.path + ".tmp"  # a start deletes it

    def _read_start(self, size: int) -> bytes | None:
        """The first `size` bytes of the file, or all of a shorter one; None if there is none."""
        try:
            fd = self.files.open_to_read(self.path)
        except FileNotFoundError:
            return None
        try:
            return self.files.read(fd, size, 0)
        finally:
            self.files.close(fd)

    def release(self) -> None:
        """Drops the entries in memory. Call it after `write`; the next lookup reads the file."""
        self._loaded = None
        if self.count:
            self._buffer = None

    def reset(self) -> None:
        """Drops every entry in memory; a later `replace` updates the file."""
        self.count = 0
        self._clean = 0
        self._buffer = bytearray()
        self._loaded = None

    def load(self) -> bytearray:
        """Reads the file, so that adding entries needs no disk."""
        if self._buffer is None:
            self._buffer = bytearray(self.view())
            self._loaded = None
        return self._buffer

    def sync_again(self) -> None:
        """Marks the file as unsynced, after a sync of it failed."""
        self._unsynced = True

    def take_unsynced(self) -> Handle | None:
        """The file, for the caller to sync; None if it was not written since the last call."""
        if not self._unsynced:
            return None
        handle = Handle(self.files, self.files.open(self.path))
        self._unsynced = False
        return handle
