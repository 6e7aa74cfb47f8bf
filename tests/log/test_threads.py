"""The event loop appends and reads while worker threads flush, retain and compact: nothing is lost, torn or stuck."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.manager import LogManager
from ixion.broker.log.reader import read, read_slice
from ixion.broker.log.view import Bound
from ixion.language.protocol.codec.sink import joined
from ixion.language.records.batches import iter_batches
from tests.log.support import Clock, QuickFiles, batch

APPENDS = 1500


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads take turns a thousand times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 1000)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_all_operations_at_once(tmp_path: Path, policy: str) -> None:
    config = LogConfig(
        segment_bytes=1500,
        index_interval_bytes=300,
        cleanup_policy=frozenset({policy}),
        min_cleanable_dirty_ratio=0.01,
        retention_bytes=40_000,
        file_delete_delay_ms=0,
    )
    manager = LogManager([str(tmp_path)], clock_ms=Clock(), config_of=lambda _: config, files=QuickFiles())
    manager.load()
    log = manager.create("orders", 0)
    cleaner = Cleaner(manager, 24 * 1000)
    done = threading.Event()
    failures: list[BaseException] = []

    def again_and_again(work: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            try:
                while not done.is_set():
                    work()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def tail() -> None:
        offset = log.log_start
        while offset < log.end_offset and not done.is_set():
            if offset < log.log_start:
                offset = log.log_start
                continue
            piece = read_slice(log, offset, 2000, Bound.END, at_once=0)
            if not piece.size:
                return
            for view in iter_batches(joined([piece.records])):
                assert view.crc_is_valid()
                assert view.next_offset > offset
                offset = int(view.next_offset)

    def tail_carefully() -> None:
        try:
            tail()
        except Exception as error:
            if "OFFSET_OUT_OF_RANGE" not in str(error):  # retention was faster
                raise

    threads = [
        again_and_again(log.flush),
        again_and_again(manager.look_after),
        again_and_again(log.release_idle),
        again_and_again(log.release_idle),
        again_and_again(lambda: cleaner.clean_dirtiest(Clock()())),
        again_and_again(tail_carefully),
    ]
    try:
        for number in range(APPENDS):
            keys = [b"k%d" % (number % 11), b"k%d" % (number % 7)]
            log.append_as_leader(batch(b"%d" % number * 10, b"x", keys=keys), 0)
            log.raise_high_watermark(log.end_offset)
            if number % 50 == 0:
                assert read(log, log.end_offset - 1, 1, Bound.END).records
    finally:
        done.set()
        for thread in threads:
            thread.join(60)
    assert not failures
    assert not any(thread.is_alive() for thread in threads)
    assert log.end_offset == APPENDS * 2
    manager.look_after()
    if policy == "delete":
        assert log.log_start > 0
        assert log.size < 45_000
    manager.close()
    again = LogManager([str(tmp_path)], clock_ms=Clock(), config_of=lambda _: config, files=QuickFiles())
    again.load()
    reopened = again.logs["orders", 0]
    assert reopened.end_offset == APPENDS * 2
    latest = {}
    offset = reopened.log_start
    while data := read(reopened, offset, 10_000, Bound.END).records:
        for view in iter_batches(data):
            for record in view.records():
                latest[record.key] = int(record.offset)
            offset = int(view.next_offset)
    expected = {}
    for number in range(APPENDS):
        expected[b"k%d" % (number % 11)] = number * 2
        expected[b"k%d" % (number % 7)] = number * 2 + 1
    assert {key: value for key, value in latest.items() if key is not None} == expected
    again.close()
