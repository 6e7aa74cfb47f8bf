"""Leader epochs: the offset at which each leader of the partition began to write.

    epoch  start      Epoch 2 wrote [0, 40), epoch 5 wrote [40, 90), epoch 6 writes from 90 on. A follower that asks
      2      0        where epoch 5 ended gets 90. One that asks for epoch 3, which wrote nothing here, gets (2, 40):
      5     40        the largest epoch not above 3, and its end. The follower truncates to this and asks again, until
      6     90        both agree.

The cache is in memory and in `leader-epoch-checkpoint`. `flush` writes and syncs the file before the recovery point
passes the batches of a new epoch; a close writes it too. After a crash, lost entries are read from the batches of the
log, which contain their epoch. An epoch without a batch stays lost, which does no harm: if epoch 5 wrote nothing,
(5, 90) and (6, 90) mean the same to a follower.

Not thread-safe by itself: the log that owns it holds its lock.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion.broker.log.checkpoint import read_epochs, write_epochs
from ixion.broker.log.files import Files
from ixion.broker.log.handle import Handle

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class EpochCache:
    __slots__ = ("_dirty", "_entries", "_files", "_path", "_unsynced", "latest")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._entries: list[tuple[int, int]] = []
        self._dirty = False
        self._unsynced = False  # written since the last `take_unsynced`
        self.latest = NO_EPOCH  # kept here because every append reads it

    def load(self) -> None:
        self._entries = read_epochs(self._files, self._path)
        self._changed()
        self._dirty = False

    def move(self, path: str) -> None:
        """Follows a rename of the folder."""
        self._path = path

    def entries(self) -> list[tuple[int, int]]:
        return list(self._entries)

    def assign(self, epoch: int, start: int) -> bool:
        """Adds an epoch that writes from `start` on, and drops entries that contradict it. True if anything changed."""
        if epoch < 0 or start < 0:
            raise ValueError(f"epoch {epoch} cannot start at offset {start}")
        entries = self._entries
        if entries and epoch == entries[-1][0] and start >= entries[-1][1]:
            return False
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start):
            entries.pop()
        entries.append((epoch, start))
        self._changed()
        return True

    def end_offset(self, epoch: int, log_end: int) -> tuple[int, int]:
        """(epoch, end): the largest known epoch not above `epoch`, and where it ended. (-1, -1) if nothing is known."""
        entries = self._entries
        if epoch == NO_EPOCH or not entries or epoch > entries[-1][0]:
            return (NO_EPOCH, NO_OFFSET)
        if epoch == entries[-1][0]:
            return (epoch, log_end)
        slot = 0
        while entries[slot][0] <= epoch:
            slot += 1
        if slot == 0:
            # Older than every entry: its records are deleted, so the follower starts at the log start.
            return (epoch, entries[0][1])
        return (entries[slot - 1][0], entries[slot][1])

    def epoch_of(self, offset: int) -> int:
        """The epoch that wrote `offset`; -1 if it is not known."""
        found = NO_EPOCH
        for epoch, start in self._entries:
            if start > offset:
                break
            found = epoch
        return found

    def truncate_end(self, end: int) -> None:
        """Drops the epochs that began at or after `end`, the new end of the log."""
        entries = self._entries
        size = len(entries)
        while entries and entries[-1][1] >= end:
            entries.pop()
        if len(entries) < size:
            self._changed()

    def truncate_start(self, start: int) -> None:
        """Drops the epochs before `start`, the new log start; the epoch that wrote `start` begins there now."""
        entries = self._entries
        gone = 0
        while gone < len(entries) and entries[gone][1] <= start:
            gone += 1
        if (gone and entries[gone - 1] != (entries[gone - 1][0], start)) or gone > 1:
            self._entries = [(entries[gone - 1][0], start), *entries[gone:]]
            self._changed()

    def replace(self, entries: list[tuple[int, int]]) -> None:
        """Takes over the entries of another replica."""
        if entries != self._entries:
            self._entries = list(entries)
            self._changed()

    def clear(self) -> None:
        if self._entries:
            self._entries = []
            self._changed()

    def write(self) -> None:
        """Writes the file if an entry has changed."""
        if self._dirty:
            write_epochs(self._files, self._path, self._entries)
            self._dirty = False
            self._unsynced = True

    def sync_again(self) -> None:
        """Marks the file as unsynced, after a sync of it failed."""
        self._unsynced = True

    def take_unsynced(self) -> Handle | None:
        """The file, for the caller to sync, and then its folder; None if both are on the disk."""
        if not self._unsynced:
            return None
        handle = Handle(self._files, self._files.open_existing(self._path))
        self._unsynced = False
        return handle

    def _changed(self) -> None:
        self._dirty = True
        self.latest = self._entries[-1][0] if self._entries else NO_EPOCH
