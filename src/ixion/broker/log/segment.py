"""A segment: a part of the log in one file, with its three indexes.

Making the object opens no file: files are opened when first read or written, indexes are read when first needed. The
last segment of a log is the active one and grows. The others are sealed: they do not change until retention deletes or
compaction replaces them.

Positions are bytes in the `.log` file, `end_position`s are exclusive. Not thread-safe: the log that owns it holds its
lock.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import os
from typing import Final

from ixion.broker.log.breather import Breather
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files, Part
from ixion.broker.log.handle import Handle
from ixion.broker.log.index_file import IndexFile
from ixion.broker.log.names import INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from ixion.broker.log.offset_index import MAX_RELATIVE, OffsetIndex
from ixion.broker.log.scan import Scan
from ixion.broker.log.time_index import TimeIndex
from ixion.broker.log.txn_index import TxnIndex
from ixion.language.model.errors import KafkaError
from ixion.language.records.batch import BatchView
from ixion.language.records.layout import HEADER_SIZE

INDEXES: Final = (INDEX, TIME_INDEX, TXN_INDEX)
# Positions cached for sequential readers, which continue where they stopped.
_HINTS: Final = 64


class Place:
    """The position of a batch, and the bytes that were read to find it."""

    __slots__ = ("base_offset", "chunk", "chunk_start", "last_offset", "position", "size")

    def __init__(self, scan: Scan) -> None:
        self.position: Final[int] = scan.position
        self.size: Final[int] = scan.size
        self.base_offset: Final[int] = scan.base_offset
        self.last_offset: Final[int] = scan.last_offset
        self.chunk: Final = scan.chunk
        self.chunk_start: Final[int] = scan.chunk_start

    def read(self, size: int) -> bytes | None:
        """`size` bytes from here on; None if they were not read yet."""
        start = self.position - self.chunk_start
        return self.chunk[start : start + size] if start + size <= len(self.chunk) else None


class Segment:
    __slots__ = (
        "_handle",
        "_hints",
        "_max_timestamp",
        "_offset_of_max",
        "_verified_end",
        "_verified_start",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "files",
        "first_timestamp",
        "folder",
        "index",
        "size",
        "suffix",
        "time_index",
        "trusted",
        "txn_index",
        "used",
    )

    def __init__(
        self, files: Files, folder: str, base_offset: int, sizes: dict[str, int], created_ms: int, suffix: str = ""
    ) -> None:
        """`sizes`: the size of each existing file, by suffix."""
        self.files: Final = files
        self.folder = folder
        self.base_offset: Final = base_offset
        self.suffix = suffix
        self.size = sizes.get(LOG, 0)
        self.index = OffsetIndex(files, self.path(INDEX), base_offset, sizes.get(INDEX, -1))
        self.time_index = TimeIndex(files, self.path(TIME_INDEX), base_offset, sizes.get(TIME_INDEX, -1))
        self.txn_index = TxnIndex(files, self.path(TXN_INDEX), base_offset, sizes.get(TXN_INDEX, -1))
        self.created_ms = created_ms
        self.first_timestamp = -1  # of the first append; -1 while it is not known
        self.bytes_since_index = 0
        self._max_timestamp = -2  # -2: not known yet; -1: none
        self._offset_of_max = base_offset
        self.trusted = not sizes  # every byte was written or checked by this process
        self._verified_start = 0  # the checked bytes of a segment that is not trusted begin here
        self._verified_end = 0
        self.used = False  # since the last `Log.release_idle`
        self._handle: Handle | None = None
        self._hints: dict[int, int] = {}

    def path(self, suffix: str) -> str:
        return os.path.join(self.folder, file_name(self.base_offset, suffix + self.suffix))

    @property
    def handle(self) -> Handle:
        """The open file. To use it without the log's lock, keep this handle, not the descriptor."""
        self.used = True
        handle = self._handle
        if handle is None:
            handle = self._handle = Handle(self.files, self.files.open_existing(self.path(LOG)))
        return handle

    @property
    def is_open(self) -> bool:
        return self._handle is not None

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp; -1 if there is none."""
        if self._max_timestamp == -2:
            self._max_timestamp, self._offset_of_max = self.time_index.last()
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the batch that has the largest timestamp."""
        if self._max_timestamp == -2:
            self._max_timestamp, self._offset_of_max = self.time_index.last()
        return self._offset_of_max

    def create(self) -> None:
        """Creates the files, empty."""
        self._handle = Handle(self.files, self.files.open(self.path(LOG)))
        self.index.file.write()
        self.time_index.file.write()

    def can_hold(self, offset: int) -> bool:
        """Whether the index can store the offset: relative to the base, in 31 bits."""
        return 0 <= offset - self.base_offset <= MAX_RELATIVE

    def get_ready(self, to_abort: bool) -> None:
        """Opens and reads all that an append needs, so that the append itself only writes its bytes.

        `to_abort`: the append aborts a transaction and needs the transaction index too.
        """
        if self._handle is None:
            self._handle = Handle(self.files, self.files.open_existing(self.path(LOG)))
        self.index.load()
        self.time_index.load()
        if to_abort:
            self.txn_index.load()

    def append(self, parts: list[Part], size: int) -> int:
        """Writes at the end; returns the position of the first byte. If the write fails, call `cut_back`."""
        position = self.size
        self.handle.write(position, parts)
        self.size = position + size
        return position

    def cut_back(self) -> bool:
        """Cuts off the bytes of a failed write. False if that fails too: then the end of the file is unknown."""
        try:
            self.handle.truncate(self.size)
        except OSError:
            return False
        return True

    def note_batch(self, position: int, size: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        """Adds a written batch: its size and timestamp, and index entries if `interval` bytes follow the last ones."""
        if position == 0:
            self.first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max = last_offset
        if self.bytes_since_index > interval:
            self.index.append(last_offset, position)
            self.time_index.append(self._max_timestamp, self._offset_of_max)
            self.bytes_since_index = 0
        self.bytes_since_index += size

    def locate(self, offset: int, ahead: int = 0) -> Place | None:
        """The first batch that ends at or after `offset`; None if there is none. Reads `ahead` bytes beyond its header.

        DamagedIndexError if the index points to a position where no batch begins, or beyond the offset.
        """
        position = self._hints.get(offset, -1)
        is_hint = position >= 0
        if not is_hint:
            position = self.index.lookup(offset)
        elif position >= self.size:
            return None
        handle = self.handle
        found = False
        scan = Scan(handle, max(position, 0), self.size, ahead)
        if position >= 0:
            found = scan.step()
        if position != 0 and (not found or scan.base_offset > offset):
            if not is_hint:
                raise self.index.file.damaged(f"offset {offset} comes before byte {position}")
            self._hints.clear()
            return self.locate(offset, ahead)
        while found:
            if scan.last_offset >= offset:
                return Place(scan)
            found = scan.step()
        if scan.position + scan.size < self.size:
            raise CorruptFileError(self.path(LOG), f"no batch begins at byte {scan.position + scan.size}")
        return None

    def boundary(self, first: Place, limit: int) -> tuple[int, int]:
        """(position, base offset) of the first batch after `first` that ends beyond byte `limit`; at the end of the
        segment, (size, next offset)."""
        start = self.index.floor_position(limit)
        if not first.position < start <= limit:
            start = first.position
        scan = Scan(self.handle, start, self.size)
        scan.chunk = first.chunk
        scan.chunk_start = first.chunk_start
        if not scan.step():  # the index is wrong
            scan = Scan(self.handle, first.position, self.size)
            scan.step()
        while True:
            if scan.position + scan.size > limit and scan.position > first.position:
                return int(scan.position), int(scan.base_offset)
            if not scan.step():
                return int(scan.position + scan.size), int(scan.last_offset) + 1

    def hint(self, offset: int, position: int) -> None:
        """Caches that the batch with `offset` begins at `position`."""
        if len(self._hints) >= _HINTS:
            self._hints.clear()
        self._hints[offset] = position

    def verified_up_to(self, position: int) -> int:
        """The end of the checked bytes from `position` on."""
        return max(position, self._verified_end) if self._verified_start <= position <= self._verified_end else position

    def verify(self, position: int, size: int) -> None:
        """Checks the batches in these bytes: the disk may have changed what an earlier process wrote."""
        end = position + size
        data = self.handle.read(size, position)
        last = self.base_offset - 1
        at = 0
        try:
            while at < size:
                view = BatchView(data, at)
                if not view.crc_is_valid() or view.base_offset <= last or view.last_offset_delta < 0:
                    raise CorruptFileError(self.path(LOG), f"the batch at byte {position + at} is damaged")
                last = int(view.last_offset)
                at += int(view.size_in_bytes)
        except KafkaError as error:
            raise CorruptFileError(self.path(LOG), f"the batch at byte {position + at}: {error.message}") from error
        if position == self._verified_end:
            self._verified_end = end
        else:
            self._verified_start = position
            self._verified_end = end

    def check_indexes(self) -> None:
        """Cheap checks of the indexes; DamagedIndexError if one fails."""
        self.index.check(self.size)
        self.time_index.check()
        self.txn_index.check()

    def note_batches(self, handle: Handle, start: int, end: int, interval: int) -> int:
        """Adds the batches in these bytes to the indexes, by their headers; returns where the last valid one ends."""
        breather = Breather()
        scan = Scan(handle, start, end)
        while scan.step():
            breather.step()
            last_offset, max_timestamp = int(scan.last_offset), int(scan.max_timestamp)
            self.note_batch(int(scan.position), int(scan.size), last_offset, max_timestamp, interval)
        return int(scan.position + scan.size)

    def take_indexes(self, other: Segment) -> None:
        """Takes over the offset and the time index of another object for the same file."""
        self._hints.clear()
        self.index = other.index
        self.time_index = other.time_index
        self._max_timestamp = other.max_timestamp
        self._offset_of_max = other.offset_of_max_timestamp
        self.bytes_since_index = other.bytes_since_index

    def next_offset(self) -> int:
        """One past the last offset in the segment, by walking from the last index entry.

        CorruptFileError if the file does not end with a complete batch, or the index points to no batch.
        """
        position = self.index.last_position()
        scan = Scan(self.handle, max(position, 0), self.size)
        if not scan.step() and position != 0:
            raise self.index.file.damaged(f"no batch begins at byte {position}")
        while scan.step():
            pass
        if scan.position + scan.size != self.size:
            raise CorruptFileError(self.path(LOG), f"no batch begins at byte {scan.position + scan.size}")
        return max(int(scan.last_offset) + 1, self.base_offset)

    def truncate(self, offset: int, now_ms: int) -> None:
        """Drops every batch that ends at or after `offset`, each as a whole."""
        self.get_ready(True)
        place = self.locate(offset)
        self._hints.clear()
        self.index.truncate(offset)
        self.time_index.truncate(offset)
        self.txn_index.truncate(offset)
        if place is not None:
            self.size = place.position
            # New batches at these positions are not verified.
            self._verified_start = min(self._verified_start, self.size)
            self._verified_end = min(self._verified_end, self.size)
        self.handle.truncate(self.size)
        if self.size == 0:
            self.created_ms = now_ms
            self.first_timestamp = -1
        self._find_largest_timestamp()

    def _find_largest_timestamp(self) -> None:
        """Takes it from the time index and the batches after the last entry of the offset index.

        Both indexes get their entries together, so the time index covers everything up to that entry.
        """
        position = self.index.last_position()
        self._max_timestamp, self._offset_of_max = self.time_index.last()
        self.bytes_since_index = self.size - position
        scan = Scan(self.handle, position, self.size)
        while scan.step():
            if scan.max_timestamp > self._max_timestamp:
                self._max_timestamp = int(scan.max_timestamp)
                self._offset_of_max = int(scan.last_offset)

    def forget(self) -> None:
        """Drops all derived state, before recovery reads the file from its beginning."""
        self._hints.clear()
        self.index = OffsetIndex(self.files, self.index.file.path, self.base_offset, 0)
        self.time_index = TimeIndex(self.files, self.time_index.file.path, self.base_offset, 0)
        self.txn_index.reset()
        self._max_timestamp = -1
        self._offset_of_max = self.base_offset
        self.bytes_since_index = 0

    def cut(self, size: int) -> None:
        """Cuts the file to `size` bytes, those that recovery found valid."""
        if size < self.size:
            self.handle.truncate(size)
            self.size = size

    def write_indexes(self) -> None:
        """Writes the index files, with the largest timestamp as the last time entry."""
        self.add_last_timestamp()
        self.write_indexes_so_far()

    def add_last_timestamp(self) -> None:
        if self.size:
            self.time_index.append(self.max_timestamp, self.offset_of_max_timestamp)

    def write_indexes_so_far(self) -> bool:
        """Writes the index files without a last time entry. True if this created a file."""
        is_new = self.index.file.write()
        is_new = self.time_index.file.write() or is_new
        return self.txn_index.write() or is_new

    def replace_indexes(self, sync: bool) -> None:
        """Replaces the index files by the entries in memory, each in one step."""
        self.index.file.replace(sync)
        self.time_index.file.replace(sync)
        self.txn_index.replace(sync)

    def take_unsynced_indexes(self) -> list[Handle]:
        """The index files written since their last sync, for the caller to sync."""
        found = (
            self.index.file.take_unsynced(),
            self.time_index.file.take_unsynced(),
            self.txn_index.file.take_unsynced(),
        )
        return [handle for handle in found if handle is not None]

    def load_first_timestamp(self) -> None:
        """Reads the largest timestamp of the first batch, from which the age of the segment counts."""
        head = self.handle.read(HEADER_SIZE, 0)
        if len(head) == HEADER_SIZE:
            self.first_timestamp = int(BatchView(head, 0).max_timestamp)

    def seal(self) -> None:
        """Seals the segment: writes its indexes and drops them from memory."""
        self.write_indexes()
        self._release_indexes()

    def close(self) -> None:
        """Closes the file and drops the indexes from memory."""
        self._release_indexes()
        # Clear `_handle` before the file closes. Compiled code drops the old value of an attribute before it stores the
        # new one, and other threads run while a file is being closed.
        leaving = [self._handle]
        self._handle = None
        leaving.clear()

    def _release_indexes(self) -> None:
        self.index.file.release()
        self.time_index.file.release()
        self.txn_index.file.release()

    def move(self, folder: str) -> None:
        """Follows a rename of the folder."""
        self.folder = folder
        for index in self._index_files():
            index.path = os.path.join(folder, os.path.basename(index.path))

    def rename(self, suffix: str) -> None:
        """Gives all files of the segment another suffix: `.deleted`, `.swap`, or none.

        If it fails halfway, the segment keeps the current name of each file, and the next call renames the others.
        """
        if suffix != self.suffix:
            self.files.rename(self.path(LOG), os.path.join(self.folder, file_name(self.base_offset, LOG + suffix)))
            self.suffix = suffix
        for index, kind in zip(self._index_files(), INDEXES, strict=True):
            new = self.path(kind)
            if index.path != new and (kind != TXN_INDEX or os.path.exists(index.path)):
                try:
                    self.files.rename(index.path, new)
                except FileNotFoundError:
                    pass  # an index can be rebuilt
            index.path = new

    def delete(self) -> None:
        """Deletes the files, the log file last: while it exists, its indexes can be rebuilt."""
        self.close()
        for index in self._index_files():
            self.files.remove(index.path)
        self.files.remove(self.path(LOG))

    def _index_files(self) -> list[IndexFile]:
        return [self.index.file, self.time_index.file, self.txn_index.file]
