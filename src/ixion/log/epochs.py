"""Leader epochs: at which offset each leader of the partition began to write.

    epoch  start      Epoch 2 wrote [0, 40), epoch 5 wrote [40, 90), epoch 6 writes from 90 on. A follower that asks
      2      0        where epoch 5 ended gets 90; one that asks for epoch 3, of which nothing was written here, gets
      5     40        (2, 40): the largest epoch not above it, and where that one ended. It truncates to this and asks
      6     90        again, until both agree.

The cache lives in memory and in `leader-epoch-checkpoint`. `flush` writes and syncs the file before the recovery point
passes the batches of a new epoch; a close writes it too. An entry that a crash takes away is read again from the
batches of the log, which carry their epoch. An epoch without a batch is lost with the crash, and not missed: (5, 90)
and (6, 90) mean the same to a follower if epoch 5 wrote nothing.

Not thread-safe by itself: the log that owns it holds its lock.
"""

from __future__ import annotations

from typing import Final

from ixion.log.checkpoint import read_epochs, write_epochs
from ixion.log.files import Files
from ixion.log.handle import Handle

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class EpochCache:
    __slots__ = ("_dirty", "_entries", "_files", "_path", "_unsynced", "latest")

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._entries: list[tuple[int, int]] = []
        self._dirty = False
        self._unsynced = False  # the file was written since it was last handed out to be synced
        self.latest = NO_EPOCH  # looked at by every append

    def load(self) -> None:
        self._entries = read_epochs(self._files, self._path)
        self._changed()
        self._dirty = False

    def move(self, path: str) -> None:
        """The folder has a new name."""
        self._path = path

    def entries(self) -> list[tuple[int, int]]:
        return list(self._entries)

    def assign(self, epoch: int, start: int) -> bool:
        """Notes that `epoch` writes from `start` on. Entries that contradict it go. True if anything changed."""
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
            # Older than every entry: its records are deleted, and the follower starts where the log does.
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
        """The log now ends at `end`: epochs that began there or later are gone."""
        entries = self._entries
        size = len(entries)
        while entries and entries[-1][1] >= end:
            entries.pop()
        if len(entries) < size:
            self._changed()

    def truncate_start(self, start: int) -> None:
        """The log now starts at `start`: the epoch that wrote it begins there, older ones are gone."""
        entries = self._entries
        gone = 0
        while gone < len(entries) and entries[gone][1] <= start:
            gone += 1
        if (gone and entries[gone - 1] != (entries[gone - 1][0], start)) or gone > 1:
            self._entries = [(entries[gone - 1][0], start), *entries[gone:]]
            self._changed()

    def replace(self, entries: list[tuple[int, int]]) -> None:
        """Takes over what another replica knows."""
        if entries != self._entries:
            self._entries = list(entries)
            self._changed()

    def clear(self) -> None:
        if self._entries:
            self._entries = []
            self._changed()

    def write(self) -> None:
        """Brings the file up to date; does nothing when it is."""
        if self._dirty:
            write_epochs(self._files, self._path, self._entries)
            self._dirty = False
            self._unsynced = True

    def sync_again(self) -> None:
        """The file was taken to be synced, and that failed."""
        self._unsynced = True

    def take_unsynced(self) -> Handle | None:
        """The file, for the caller to sync, and its folder after it; None if both are on the disk."""
        if not self._unsynced:
            return None
        handle = Handle(self._files, self._files.open_existing(self._path))
        self._unsynced = False
        return handle

    def _changed(self) -> None:
        self._dirty = True
        self.latest = self._entries[-1][0] if self._entries else NO_EPOCH
