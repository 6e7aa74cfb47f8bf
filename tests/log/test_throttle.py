"""log.cleaner.io.max.bytes.per.second: compaction waits, and a stop does not wait for it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ixion.broker.log.checkpoint import CLEANER_OFFSETS, read_offsets
from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.manager import LogManager
from ixion.broker.log.throttle import LONGEST_SLEEP_S, SPAN_S, Throttle
from tests.log.support import NOW, Clock, QuickFiles, batch


class Seconds:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept = 0.0
        self.longest = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds
        self.longest = max(self.longest, seconds)


def never() -> bool:
    return False


def test_bytes_are_spent_at_the_rate() -> None:
    seconds = Seconds()
    throttle = Throttle(1000, seconds, seconds.sleep)
    for _ in range(10):
        throttle.spend(500, never)
    assert seconds.slept == pytest.approx(5)
    assert seconds.longest <= LONGEST_SLEEP_S
    seconds.now += 3600  # a rest earns no more than the span
    throttle.spend(1000, never)
    assert seconds.slept == pytest.approx(6 - SPAN_S)


def test_without_a_limit_nothing_sleeps() -> None:
    seconds = Seconds()
    Throttle(math.inf, seconds, seconds.sleep).spend(1 << 40, never)
    Throttle(1.7976931348623157e308, seconds, seconds.sleep).spend(1 << 40, never)
    assert seconds.slept == 0


def test_a_stop_ends_the_wait() -> None:
    seconds = Seconds()
    Throttle(0.0, seconds, seconds.sleep).spend(1 << 40, lambda: seconds.slept > 1)
    assert seconds.slept <= 1 + 2 * LONGEST_SLEEP_S


@pytest.mark.parametrize("rate", [1000, 50_000])
def test_a_compaction_reads_and_writes_no_faster(tmp_path: Path, rate: int) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=2000, min_cleanable_dirty_ratio=0.01)
    manager = LogManager([str(tmp_path)], clock_ms=Clock(), config_of=lambda _: config, files=QuickFiles())
    manager.load()
    log = manager.create("orders", 0)
    for number in range(100):
        log.append_as_leader(batch(b"x" * 50, key=b"%d" % (number % 10)), 0)
    log.roll()
    log.raise_high_watermark(log.end_offset)
    seconds = Seconds()
    cleaner = Cleaner(manager, 1 << 20, throttle=Throttle(math.inf, seconds, seconds.sleep))
    cleaner.reconfigure(1 << 20, 0.9, rate)
    stats = cleaner.clean_dirtiest(NOW)
    assert stats is not None
    moved = 2 * stats.bytes_before + stats.bytes_after  # read for the map, read again, written
    assert seconds.slept == pytest.approx(moved / rate, abs=SPAN_S)
    manager.abandon()


def test_the_load_factor_bounds_the_keys_of_one_pass(tmp_path: Path) -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01)
    manager = LogManager([str(tmp_path)], clock_ms=Clock(), config_of=lambda _: config, files=QuickFiles())
    manager.load()
    log = manager.create("orders", 0)
    for number in range(100):
        log.append_as_leader(batch(b"x", key=b"%d" % number), 0)
    log.roll()
    log.raise_high_watermark(log.end_offset)
    cleaner = Cleaner(manager, 24 * 100)
    cleaner.reconfigure(24 * 100, 0.25, math.inf)
    assert cleaner.clean_dirtiest(NOW) is not None
    assert read_offsets(QuickFiles(), str(tmp_path / CLEANER_OFFSETS)) == {("orders", 0): 25}
    manager.abandon()
