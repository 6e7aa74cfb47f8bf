"""A directory of another Kafka is adopted and keeps every record, whatever the defaults, until that is changed."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from ixion.broker.log.cleaner import Cleaner
from ixion.broker.log.config import LogConfig
from ixion.broker.log.manager import LogManager
from ixion.broker.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE
from ixion.broker.startup.adopt import KEEP_ALL
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.errors import StartupError
from tests.broker.support import broker_on, broker_with, run, running
from tests.broker.test_restart import create
from tests.log.support import NOW, QuickFiles, batch, stored

YEARS_LATER = NOW + 10 * 365 * 24 * 3_600_000
# What would take nearly everything from a topic that has no settings of its own.
GREEDY = {
    "log_retention_ms": "1000",
    "log_retention_bytes": "1",
    "log_cleanup_policy": "compact,delete",
    "log_cleaner_min_cleanable_ratio": "0.0",
    "log_initial_task_delay_ms": "0",
}
KEY = b"\x00\x63"  # in an internal topic: of a version that coordinators do not know, and pass over
TOPICS = ("events", GROUP_OFFSETS, TRANSACTION_STATE)


def theirs(path: Path, *topics: str) -> None:
    """Logs of many segments, all with one key, as a broker leaves them whose metadata is elsewhere."""
    config = LogConfig(segment_bytes=300)
    manager = LogManager([str(path)], clock_ms=lambda: NOW, config_of=lambda _: config, files=QuickFiles())
    manager.load()
    for topic in topics:
        for number in range(2):
            log = manager.create(topic, number)
            for value in range(12):
                log.append_as_leader(batch(b"%d" % value * 10, key=KEY), 4)
            log.raise_high_watermark(12)
            assert len(log.segments) > 3
    manager.close()


def look_after(broker: Broker) -> None:
    """Retention and compaction, years later."""
    logs = broker.parts.logs
    logs.clock_ms = lambda: YEARS_LATER
    logs.look_after()
    cleaner = Cleaner(logs, 1 << 20)
    while cleaner.clean_dirtiest(YEARS_LATER) is not None:
        pass


def values(broker: Broker, topic: str, number: int = 0) -> list[bytes]:
    return [value for _, value in stored(broker.parts.replicas.partitions[topic, number].log)]


ALL = [b"%d" % value * 10 for value in range(12)]


def test_an_adopted_topic_keeps_every_record_whatever_the_defaults_are(tmp_path: Path) -> None:
    theirs(tmp_path / "d", *TOPICS)

    async def work() -> None:
        for _ in range(2):
            async with running(tmp_path / "d", **GREEDY) as broker:
                assert broker.parts.image.topics["events"].config == dict(KEEP_ALL)
                look_after(broker)
                assert values(broker, "events") == values(broker, "events", 1) == ALL

    run(work)


@pytest.mark.parametrize("topic", [GROUP_OFFSETS, TRANSACTION_STATE])
def test_an_internal_topic_keeps_its_last_states_and_loses_nothing_by_time(tmp_path: Path, topic: str) -> None:
    theirs(tmp_path / "d", *TOPICS)

    async def work() -> None:
        async with running(tmp_path / "d", **GREEDY) as broker:
            assert broker.parts.image.topics[topic].config == {"cleanup.policy": "compact"}
            log = broker.parts.logs.logs[topic, 0]
            assert (log.config.compact, log.config.delete) == (True, False), "from the first moment on"
            broker.parts.logs.clock_ms = lambda: YEARS_LATER
            broker.parts.logs.look_after()
            assert values(broker, topic) == ALL
            look_after(broker)
            assert values(broker, topic)[-1] == ALL[-1], "the last state of the one key"

    run(work)


def test_a_setting_of_an_adopted_topic_can_be_changed(tmp_path: Path) -> None:
    theirs(tmp_path / "d", *TOPICS)

    async def work() -> None:
        async with running(tmp_path / "d") as broker:
            await broker.parts.controller.configs.alter("topics", "events", lambda old: {**old, "retention.ms": "1000"})
            look_after(broker)
            assert values(broker, "events") == []
            assert values(broker, GROUP_OFFSETS) != []

    run(work)


def test_one_line_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    theirs(tmp_path / "d", *TOPICS, *(f"t{number}" for number in range(20)))

    async def work() -> None:
        for _ in range(2):
            async with running(tmp_path / "d"):
                pass

    with caplog.at_level(logging.WARNING):
        run(work)
    (line,) = [record.getMessage() for record in caplog.records if "adopted" in record.getMessage()]
    assert line.startswith("adopted 23 topics with 46 partitions found on disk: __consumer_offsets, ")
    assert "cleanup.policy=delete, retention.ms=-1, retention.bytes=-1" in line
    assert "and 13 more" in line
    assert "offsets.retention.minutes" in line


def test_a_topic_of_our_own_keeps_the_defaults(tmp_path: Path) -> None:
    theirs(tmp_path / "d", "events")

    async def work() -> None:
        async with running(tmp_path / "d", **GREEDY) as broker:
            await create(broker, "ours")
            assert broker.parts.image.topics["ours"].config == {}
            assert broker.parts.logs.logs["ours", 0].config.retention_ms == 1000
        async with running(tmp_path / "d", **GREEDY) as broker:
            assert broker.parts.logs.logs["ours", 0].config.retention_ms == 1000

    run(work)


def test_logs_of_no_topic_lose_nothing_before_they_are_set_aside(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path / "d", **GREEDY) as broker:
            await create(broker, "ours")
        theirs(tmp_path / "d", "events")
        async with running(tmp_path / "d", **GREEDY):
            pass

    run(work)
    (kept, _) = (tmp_path / "d").glob("events-*-stray")
    assert len(list(kept.glob("*.log"))) > 3


class OneSick(QuickFiles):
    """Opens no more than the first file of a folder."""

    def __init__(self, part: str, code: int) -> None:
        self.part = part
        self.code = code

    def open_existing(self, path: str) -> int:
        if self.part in path:
            raise OSError(self.code, os.strerror(self.code), path)
        return super().open_existing(path)


def test_a_partition_that_cannot_be_loaded_now_is_adopted_too(tmp_path: Path) -> None:
    theirs(tmp_path / "d", "events")

    async def work() -> None:
        broker = broker_with(OneSick("events-1", errno.EMFILE), tmp_path / "d")
        await broker.start()
        try:
            partitions = broker.parts.image.topics["events"].partitions
            assert [each.leader_epoch for each in partitions] == [5, 5], "newer than what its checkpoint tells"
            assert ("events", 1) in broker.parts.logs.unreadable
        finally:
            await broker.stop(drain_ms=100)
        async with running(tmp_path / "d", **GREEDY) as broker:
            look_after(broker)
            assert values(broker, "events", 1) == ALL

    run(work)


def test_half_of_the_directories_are_not_adopted(tmp_path: Path) -> None:
    theirs(tmp_path / "a", "events")
    theirs(tmp_path / "b", "others")
    (tmp_path / "b" / "recovery-point-offset-checkpoint").unlink()
    (tmp_path / "b" / "recovery-point-offset-checkpoint").mkdir()  # which cannot be read as a file

    async def work() -> None:
        with pytest.raises(StartupError, match="cannot be adopted while a log directory is offline"):
            await broker_on(tmp_path / "a", tmp_path / "b").start()
        (tmp_path / "b" / "recovery-point-offset-checkpoint").rmdir()
        async with running(tmp_path / "a", tmp_path / "b") as broker:
            assert values(broker, "events") == values(broker, "others") == ALL

    run(work)
