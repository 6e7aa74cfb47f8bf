"""Checkpoints are written while logs are made."""

from __future__ import annotations

import threading
from pathlib import Path

from ixion.broker.log.checkpoint import HIGH_WATERMARKS
from ixion.broker.log.config import LogConfig
from ixion.broker.log.manager import LogManager
from ixion.broker.log.together import for_each
from tests.log.support import Clock, QuickFiles, batch


class Interleaved(QuickFiles):
    """Lets another thread run in the middle of each checkpoint of high watermarks."""

    def __init__(self) -> None:
        self.written = 0
        self.halfway = threading.Event()

    def rename(self, old: str, new: str) -> None:
        if new.endswith(HIGH_WATERMARKS):
            self.written += 1
            self.halfway.wait(0.001)
        super().rename(old, new)


def test_logs_can_be_made_while_checkpoints_are_written(tmp_path: Path) -> None:
    files = Interleaved()
    manager = LogManager([str(tmp_path)], clock_ms=Clock(), config_of=lambda _: LogConfig(), files=files)
    manager.load()
    log = manager.create("orders", 0)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            log.append_as_leader(batch(b"a"), 0)
            log.raise_high_watermark(log.end_offset)
            manager.checkpoints.write_high_watermarks()

    writer = threading.Thread(target=write)
    writer.start()
    failed = for_each(list(range(100)), lambda partition: manager.create("new", partition))
    done.set()
    writer.join()
    assert failed == []
    assert len(manager.logs) == 101
    assert files.written > 1
    manager.close()
