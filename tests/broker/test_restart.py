"""Stopped, killed, moved, begun by another Kafka: what a broker finds when it starts again."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.controller.planning import NewTopic
from ixion.broker.coordinators.txn.sending import MarkerSender
from ixion.broker.coordinators.txn.states import ENDING
from ixion.broker.log.config import LogConfig
from ixion.broker.log.files import Files
from ixion.broker.log.manager import LogManager
from ixion.broker.log.meta_properties import FILE_NAME, MetaProperties, write_meta_properties
from ixion.broker.log.partition_metadata import FILE_NAME as PARTITION_METADATA
from ixion.broker.log.partition_metadata import write_topic_id
from ixion.broker.log.prepare import Origin
from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import encode_config
from ixion.broker.replica.internal_topic import TRANSACTION_STATE
from ixion.broker.replica.results import AppendResult
from ixion.broker.startup import steps as startup
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.parts import Parts
from ixion.config.topic import warn_once
from ixion.language.model.errors import ErrorCode
from tests.broker.support import broker_on, run, running
from tests.log.support import NOW, batch, stored


async def produce(broker: Broker, topic: str, *values: bytes) -> AppendResult:
    over: asyncio.Future[list[AppendResult]] = asyncio.get_running_loop().create_future()
    entry = (topic, 0, batch(*values))
    broker.parts.replicas.append(5000, -1, Origin.CLIENT, [entry], over.set_result)
    (result,) = await over
    return result


async def create(broker: Broker, name: str, **config: str) -> None:
    given = {key.replace("_", "."): value for key, value in config.items()}
    (outcome,) = await broker.parts.controller.topics.create([NewTopic(name=name, config=given)])
    assert outcome.code == ErrorCode.NONE


def values(broker: Broker, topic: str) -> list[bytes]:
    partition = broker.parts.replicas.partition(topic, 0)
    assert partition is not None
    assert partition.log.high_watermark == partition.log.end_offset
    return [value for _, value in stored(partition.log)]


def test_stopped_and_started_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path) as broker:
            await create(broker, "t", retention_ms="123456789")
            await produce(broker, "t", b"a", b"b")
            topic_id = broker.parts.image.topics["t"].topic_id
        async with running(tmp_path) as broker:
            topic = broker.parts.image.topics["t"]
            assert (topic.topic_id, topic.partitions[0].leader_epoch) == (topic_id, 0)
            assert topic.config == {"retention.ms": "123456789"}
            partition = broker.parts.replicas.partitions["t", 0]
            assert partition.log.config.retention_ms == 123456789
            assert values(broker, "t") == [b"a", b"b"]
            assert (await produce(broker, "t", b"c")).first_offset == 2

    run(work)


def test_killed_and_started_again(tmp_path: Path) -> None:
    """A copy of a running broker's directory is what kill -9 leaves behind."""

    async def work() -> None:
        async with running(tmp_path / "a") as broker:
            await create(broker, "t")
            await create(broker, "synced", flush_messages="1")
            await produce(broker, "t", b"a", b"b")
            await produce(broker, "synced", b"c")
            shutil.copytree(tmp_path / "a", tmp_path / "b")
            await produce(broker, "t", b"later")
        async with running(tmp_path / "b") as broker:
            assert values(broker, "t") == [b"a", b"b"]
            partition = broker.parts.replicas.partitions["synced", 0]
            while partition.log.high_watermark < 1:  # flushed again first, on another thread
                await asyncio.sleep(0.001)
            assert values(broker, "synced") == [b"c"]
            assert broker.parts.image.topics["t"].partitions[0].leader_epoch == 1
            assert broker.parts.image.controller_epoch == 2

    run(work)


def test_a_batch_cut_short_by_a_crash_is_truncated(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path / "a") as broker:
            await create(broker, "t")
            await produce(broker, "t", b"a")
            await produce(broker, "t", b"b")
            shutil.copytree(tmp_path / "a", tmp_path / "b")
        file = tmp_path / "b" / "t-0" / "00000000000000000000.log"
        file.write_bytes(file.read_bytes()[:-3])
        async with running(tmp_path / "b") as broker:
            assert values(broker, "t") == [b"a"]
            assert (await produce(broker, "t", b"c")).first_offset == 1

    run(work)


def theirs(path: Path, epoch: int = 9) -> bytes:
    """A directory as Apache Kafka leaves it: meta.properties, logs with epochs and topic ids, no metadata of ours."""
    path.mkdir()
    write_meta_properties(Files(), str(path / FILE_NAME), MetaProperties(version=0, cluster_id="theirs", node_id=3))
    logs = LogManager([str(path)], clock_ms=lambda: NOW)
    logs.load()
    topic_id = b"t" * 16
    for number in (0, 2):
        log = logs.create("events", number)
        log.append_as_leader(batch(b"old"), epoch)
        write_topic_id(Files(), str(path / f"events-{number}" / PARTITION_METADATA), topic_id)
    logs.close()
    return topic_id


def test_a_directory_of_apache_kafka_is_served(tmp_path: Path) -> None:
    topic_id = theirs(tmp_path / "d", epoch=9)

    async def work() -> None:
        async with running(tmp_path / "d") as broker:
            topic = broker.parts.image.topics["events"]
            assert (broker.parts.cluster_id, broker.parts.node_id, topic.topic_id) == ("theirs", 3, topic_id)
            assert [each.leader_epoch for each in topic.partitions] == [10, 0, 10]  # newer than the epoch in the log
            assert values(broker, "events") == [b"old"]
            assert (await produce(broker, "events", b"new")).first_offset == 1
            partition = broker.parts.replicas.partitions["events", 0]
            assert [(epoch, start) for epoch, start in partition.log.epochs.entries()] == [(9, 0), (10, 1)]
        async with running(tmp_path / "d") as broker:
            assert values(broker, "events") == [b"old", b"new"]

    run(work)


@pytest.mark.parametrize("at", ["cluster_id", "log_manager", "controller", "internal_topics", "partitions_online"])
def test_a_first_start_that_is_killed_does_not_cost_the_logs(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before or after they were taken in: as long as there was no controller, the next start looks at them again."""
    theirs(tmp_path / "d")
    steps = startup.STEPS

    async def killed(parts: Parts) -> None:
        shutil.copytree(tmp_path / "d", tmp_path / "left")
        raise StartupError("killed")

    async def work() -> None:
        monkeypatch.setattr(startup, "STEPS", tuple(killed if step.__name__ == at else step for step in steps))
        with pytest.raises(StartupError):
            await broker_on(tmp_path / "d").start()
        monkeypatch.setattr(startup, "STEPS", steps)
        for path in (tmp_path / "left", tmp_path / "d"):
            async with running(path) as broker:
                assert values(broker, "events") == [b"old"]
                assert len(broker.parts.image.topics["events"].partitions) == 3

    run(work)


def test_topics_that_the_metadata_does_not_know_are_kept_aside(tmp_path: Path) -> None:
    async def work() -> None:
        async with running(tmp_path / "a") as broker:
            await create(broker, "t")
        shutil.copytree(tmp_path / "a" / "t-0", tmp_path / "a" / "unknown-0")
        async with running(tmp_path / "a") as broker:
            assert list(broker.parts.image.topics) == ["t"]
        (kept,) = (tmp_path / "a").glob("unknown-0.*-stray")
        assert (kept / "00000000000000000000.log").exists()

    run(work)


def test_a_transaction_that_was_committed_gets_its_markers_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of EndTxn counts as soon as the outcome is stored; the markers may not be written yet."""
    settings = {"transaction_state_log_num_partitions": "1"}

    async def work() -> None:
        broker = broker_on(tmp_path, **settings)
        await broker.start()
        await create(broker, "orders")  # led after __transaction_state, by its name
        await broker.parts.internal_topics[TRANSACTION_STATE].ensure()
        transactions = broker.parts.transactions.get()
        over: asyncio.Queue[Any] = asyncio.Queue()
        transactions.init_producer_id("tx", 60_000, -1, -1, lambda *answer: over.put_nowait(answer))
        code, producer_id, epoch = await over.get()
        assert code == ErrorCode.NONE
        transactions.add_partitions("tx", producer_id, epoch, [("orders", 0)], 0, over.put_nowait)
        assert await over.get() == ErrorCode.NONE
        paid = batch(b"paid", producer=(producer_id, epoch, 0), transactional=True)
        broker.parts.replicas.append(5_000, -1, Origin.CLIENT, [("orders", 0, paid)], over.put_nowait)
        assert (await over.get())[0].code == ErrorCode.NONE
        with monkeypatch.context() as killed:
            killed.setattr(MarkerSender, "send", lambda *_: None)
            transactions.end("tx", producer_id, epoch, True, 0, lambda *answer: over.put_nowait(answer))
            assert (await over.get())[0] == ErrorCode.NONE
            await broker.abandon()
        async with running(tmp_path, **settings) as broker:
            transactions = broker.parts.transactions.get()
            while isinstance(found := transactions.describe("tx"), ErrorCode) or found.state in ENDING:
                await asyncio.sleep(0.01)
            log = broker.parts.replicas.partitions["orders", 0].log
            assert (log.last_stable_offset, log.end_offset) == (2, 2), "the record and the marker"

    run(work)


def test_a_topic_setting_that_we_do_not_know_keeps_no_broker_from_its_logs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Apache Kafka 3.9 may have written it, for example message.downconversion.enable."""
    warn_once.cache_clear()
    written = {"message.downconversion.enable": "false", "min.insync.replicas": "2", "max.message.bytes": "many"}

    async def work() -> None:
        async with running(tmp_path) as broker:
            await create(broker, "t")
            await produce(broker, "t", b"a")
            await broker.parts.session.set(paths.config("topics", "t"), encode_config(written))
        async with running(tmp_path) as broker:
            partition = broker.parts.replicas.partitions["t", 0]
            assert (partition.min_isr, partition.log.config.max_message_bytes) == (2, LogConfig().max_message_bytes)
            assert (await produce(broker, "t", b"b")).code == ErrorCode.NONE

    run(work)
    assert "unknown topic setting 'message.downconversion.enable'" in caplog.text
