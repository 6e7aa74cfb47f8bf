"""Compiled loops over records and batches on worker threads let other threads run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.broker.log import breather
from ixion.broker.log.breather import EVERY
from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.manager import LogManager
from ixion.language.records.compression import Codec
from tests.log.support import NOW, Box, Clock, QuickFiles, batch, stored

COUNT = 30_000


class Sleeps:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, seconds: float) -> None:
        assert seconds == 0
        self.count += 1


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> Sleeps:
    counter = Sleeps()
    monkeypatch.setattr(breather, "sleep", counter)
    return counter


def test_a_compaction_gives_way_in_each_of_its_passes(tmp_path: Path, sleeps: Sleeps) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01)
    manager = LogManager([str(tmp_path)], clock_ms=Clock(), config_of=lambda _: config, files=QuickFiles())
    manager.load()
    log = manager.create("orders", 0)
    keys = [b"%d" % (number % 100) for number in range(COUNT)]
    log.append_as_leader(batch(*[b""] * COUNT, keys=keys, codec=Codec.ZSTD), 0)
    log.roll()
    log.raise_high_watermark(log.end_offset)
    stats = Cleaner(manager, 1 << 20).clean_dirtiest(NOW)
    assert stats is not None
    assert (stats.records_before, stats.records_after) == (COUNT, 100)
    # The map of keys, what stays, and the new batch: each walks all records.
    assert sleeps.count == 3 * (COUNT // EVERY)
    assert [offset for offset, _ in stored(log)] == list(range(COUNT - 100, COUNT))
    manager.abandon()


def test_a_recovery_gives_way(box: Box, sleeps: Sleeps) -> None:
    log = box.open()
    log.append_as_follower(b"".join(batch(b"", base_offset=offset) for offset in range(3 * EVERY + 10)))
    log.abandon()
    sleeps.count = 0
    assert box.open().end_offset == 3 * EVERY + 10
    assert sleeps.count >= 3
