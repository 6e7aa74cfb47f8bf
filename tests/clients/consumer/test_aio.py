"""The consumer on asyncio: the same records, groups and errors, with await in front."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ixion.clients import RebalanceListener, TopicPartition
from ixion.clients.aio import Consumer
from ixion.clients.consumer.guard import ConcurrentUseError
from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.core.consumer.commits import OffsetAndMetadata
from ixion.clients.core.consumer.errors import ConsumerClosedError, ConsumerUseError, NoOffsetError, WakeupError
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import KafkaError
from ixion.testing import Broker
from tests.clients.consumer.test_consumer import WAIT_S, numbered, send

names = itertools.count()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"aio-{next(names)}"
    broker.create_topic(name, 2)
    return name


async def reading(broker: Broker, topic: str, offset: int | None = 0, **settings: Any) -> Consumer:
    """One that reads partition 0 from `offset`."""
    consumer = Consumer(broker.bootstrap, **settings)
    await consumer.assign([TopicPartition(topic, 0)])
    if offset is not None:
        await consumer.seek(TopicPartition(topic, 0), offset)
    return consumer


def test_records_columns_positions_and_offsets(broker: Broker, topic: str) -> None:
    numbered(broker, topic, 300)
    place, other = TopicPartition(topic, 0), TopicPartition(topic, 1)

    async def main() -> None:
        async with await reading(broker, topic, group=topic, enable_auto_commit=False) as consumer:
            async for record in consumer:
                assert await consumer.position(place) == record.offset + 1
                if record.offset == 2:
                    break
            found = await consumer.poll(WAIT_S, 4)
            assert [record.value for record in found] == [b"3", b"4", b"5", b"6"]
            seen: list[int] = []
            async for batch in consumer.batches(WAIT_S):
                seen += batch.offsets
                if seen[-1] == 299:
                    break
            assert seen == list(range(7, 300))
            assert await consumer.end_offsets([place, other]) == {place: 300, other: 0}
            assert await consumer.beginning_offsets([place]) == {place: 0}
            assert await consumer.offsets_for_times({place: 0, other: 0}) == {place: 0, other: None}
            await consumer.commit({place: OffsetAndMetadata(7, "why")})
            assert await consumer.committed([place, other]) == {place: 7, other: None}
            assert (await consumer.committed_metadata([place]))[place] == OffsetAndMetadata(7, "why", -1)
            told: list[KafkaError | None] = []
            await consumer.commit_async(on_commit=lambda _, error: told.append(error))
            while not told:
                await consumer.poll(0.01)
            assert told == [None]
            assert await consumer.committed([place]) == {place: 300}
            await consumer.seek_to_beginning(place)
            consumer.pause(place)
            assert consumer.paused() == [place]
            assert await consumer.poll(0.05) == []
            consumer.resume(place)
            assert (await consumer.poll(WAIT_S))[0].offset == 0
            assert consumer.metrics()["records-consumed-total"] >= 300

    asyncio.run(main())


class Hearing(RebalanceListener):
    def __init__(self) -> None:
        self.heard: list[tuple[str, list[Place]]] = []

    async def on_assigned(self, partitions: Sequence[Place]) -> None:
        await asyncio.sleep(0)
        self.heard.append(("assigned", list(partitions)))

    def on_revoked(self, partitions: Sequence[Place]) -> None:
        self.heard.append(("revoked", list(partitions)))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group(broker: Broker, topic: str, protocol: str) -> None:
    numbered(broker, topic, 3)
    settings: dict[str, Any] = {"group": topic, "group_protocol": protocol, "auto_offset_reset": "earliest"}
    both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]

    async def main() -> None:
        hearing = Hearing()
        async with Consumer(broker.bootstrap, topics=[topic], listener=hearing, **settings) as consumer:
            found: list[ConsumerRecord] = []
            while len(found) < 3:
                found += await consumer.poll(WAIT_S)
            assert consumer.assignment() == both
            assert consumer.subscription() == [topic]
            assert consumer.group_metadata().group_id == topic
        assert hearing.heard == [("assigned", both), ("revoked", both)]
        send(broker, topic, b"next")
        async with Consumer(broker.bootstrap, topics=[topic], **settings) as consumer:
            assert [record.value for record in await consumer.poll(WAIT_S)] == [b"next"]

    asyncio.run(main())


def test_wakeup_from_another_thread(broker: Broker, topic: str) -> None:
    async def main() -> None:
        async with await reading(broker, topic) as consumer:
            threading.Timer(0.05, consumer.wakeup).start()
            with pytest.raises(WakeupError):
                await consumer.poll(WAIT_S)
            assert await consumer.poll(0.01) == []

    asyncio.run(main())


def test_a_storm_of_wakeups_takes_one_place_in_the_loop(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with await reading(broker, topic) as consumer:
            scheduled: list[object] = []
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(loop, "call_soon_threadsafe", scheduled.append)
            for _ in range(10_000):
                consumer.wakeup()
            assert len(scheduled) == 1
            with pytest.raises(WakeupError):
                await consumer.poll(WAIT_S)
            assert await consumer.poll(0.01) == []
            consumer.wakeup()
            assert len(scheduled) == 2

    asyncio.run(main())


def test_a_second_task_is_refused_and_cancelling_leaves_it_usable(broker: Broker, topic: str) -> None:
    async def main() -> None:
        async with await reading(broker, topic) as consumer:
            waiting = asyncio.ensure_future(consumer.poll(WAIT_S))
            await asyncio.sleep(0.01)
            with pytest.raises(ConcurrentUseError, match="another task uses this consumer"):
                await consumer.poll()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await consumer.poll(0.01) == []

    asyncio.run(main())


def test_one_clear_error_each(broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="no event loop is running"):
        Consumer(broker.bootstrap)

    async def main() -> Consumer:
        async with Consumer(broker.bootstrap) as alone:
            with pytest.raises(ConsumerUseError, match="there is nothing to read"):
                await alone.poll()
            with pytest.raises(ConsumerUseError, match="group=…"):
                await alone.subscribe([topic])
            pid = os.getpid()
            with monkeypatch.context() as forked:
                forked.setattr(os, "getpid", lambda: pid + 1)
                with pytest.raises(ConcurrentUseError, match="belongs to the parent process"):
                    await alone.poll()
        async with await reading(broker, topic, offset=None, auto_offset_reset="none") as strict:
            with pytest.raises(NoOffsetError):
                await strict.poll(WAIT_S)
        with pytest.raises(ConsumerClosedError):
            await strict.poll()
        strict.wakeup()
        await strict.close()
        assert len(asyncio.all_tasks()) == 1
        return Consumer(broker.bootstrap)

    elsewhere = asyncio.run(main())

    async def other_loop() -> None:
        with pytest.raises(RuntimeError, match="belongs to another event loop"):
            await elsewhere.poll()

    asyncio.run(other_loop())
    elsewhere.wakeup()
