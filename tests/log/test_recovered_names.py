"""What recovery rebuilds is on the disk before a recovery point says so."""

from __future__ import annotations

import os
from pathlib import Path

from ixion.broker.log.config import LogConfig
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import Origin
from tests.log.support import Box, QuickFiles, batch, marker


class Durable(QuickFiles):
    """Knows which names and which files a power failure would leave."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.synced: set[str] = set()

    def write(self, fd: int, position: int, parts: list[bytes | bytearray | memoryview]) -> None:
        self.synced.discard(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        super().write(fd, position, parts)

    def sync(self, fd: int) -> None:
        self.synced.add(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        self.synced.discard(os.path.basename(new))
        if os.path.basename(old) in self.synced:
            self.synced.remove(os.path.basename(old))
            self.synced.add(os.path.basename(new))

    def sync_dir(self, path: str) -> None:
        self.names |= set(os.listdir(path))


def abort(log: Log, number: int) -> None:
    log.append_as_leader(batch(b"gone" * 20, producer=(number, 0, 0), transactional=True), 0)
    log.append_as_leader(marker(number, 0, commit=False), 0, Origin.COORDINATOR)


def test_the_names_of_recovered_indexes_are_synced_by_the_next_flush(tmp_path: Path) -> None:
    box = Box(tmp_path)
    log = box.open()
    log.append_as_leader(batch(b"flushed"), 0)
    log.flush()
    abort(log, 1)
    log.abandon()
    files = Durable()
    log = Box(tmp_path, files=files).open(recovery_point=1)
    log.flush()
    assert log.recovery_point == log.end_offset
    assert "00000000000000000000.txnindex" in files.names & files.synced
    log.abandon()


def test_an_index_rebuilt_below_the_recovery_point_is_synced_at_once(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=400)
    log = Box(tmp_path, config).open()
    for number in range(6):
        abort(log, number)
    end = log.end_offset
    assert len(log.segments) > 2
    log.close()
    (Path(log.folder) / "00000000000000000000.txnindex").write_bytes(b"damaged")
    files = Durable()
    log = Box(tmp_path, config, files).open(clean=True, recovery_point=end)
    assert log.recovery_point == end
    assert log.segments.first.txn_index.entries()
    assert "00000000000000000000.txnindex" in files.names & files.synced
    log.abandon()
