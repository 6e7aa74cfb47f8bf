"""The producer snapshots of one partition: takes them, finds the one to start from, deletes old ones."""

from __future__ import annotations

import logging
import os

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.broker.log.handle import Handle
from ixion.broker.log.names import SNAPSHOT, file_name
from ixion.broker.log.producer_entry import ProducerEntry
from ixion.broker.log.producer_state import ProducerState
from ixion.broker.log.snapshot_file import read_snapshot, write_snapshot

logger = logging.getLogger(__name__)


class Snapshots:
    __slots__ = ("_files", "_folder", "offsets")

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self.offsets: list[int] = []  # ascending

    def path(self, offset: int) -> str:
        return os.path.join(self._folder, file_name(offset, SNAPSHOT))

    def move(self, folder: str) -> None:
        self._folder = folder

    def take(self, state: ProducerState) -> bool:
        """Writes the current state; False if there is already a snapshot of this offset or a later one.

        No sync is needed: a snapshot damaged by a power failure is deleted, and the log is read instead.
        """
        offset = state.end_offset
        if self.offsets and offset <= self.offsets[-1]:
            return False
        write_snapshot(self._files, self.path(offset), list(state.producers.values()))
        self.offsets.append(offset)
        return True

    def open_latest(self) -> Handle:
        """The file of the latest snapshot, for the caller to sync."""
        return Handle(self._files, self._files.open_existing(self.path(self.offsets[-1])))

    def load_latest(self, lowest: int, highest: int) -> tuple[int, list[ProducerEntry]] | None:
        """The latest valid snapshot in [lowest, highest]. Damaged ones are deleted."""
        for offset in [offset for offset in reversed(self.offsets) if lowest <= offset <= highest]:
            try:
                return offset, read_snapshot(self._files, self.path(offset))
            except FileNotFoundError:
                self.offsets.remove(offset)
            except CorruptFileError as error:
                logger.warning("deleting a damaged producer snapshot: %s", error)
                self.drop(offset)
        return None

    def drop(self, offset: int) -> None:
        self._files.remove(self.path(offset))
        self.offsets.remove(offset)

    def drop_above(self, offset: int) -> bool:
        """Deletes snapshots of later offsets; False if there are none."""
        above = [other for other in self.offsets if other > offset]
        for other in above:
            self.drop(other)
        return bool(above)

    def drop_all(self) -> None:
        self.drop_above(-1)

    def drop_strays(self, bases: list[int]) -> None:
        """Deletes all but those named after a segment, and the latest one if it is later than all segments."""
        known = set(bases)
        strays = [offset for offset in self.offsets if offset not in known]
        latest = max(bases, default=-1)
        for offset in strays:
            if offset != strays[-1] or offset < latest:
                self.drop(offset)
