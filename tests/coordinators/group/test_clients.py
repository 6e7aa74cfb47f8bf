"""Groups of real clients: librdkafka, kafka-python, aiokafka."""

from __future__ import annotations

import asyncio
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.testing import Broker
from tests.coordinators.group.members import subscribe

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the way in which it reads its own files
    from kafka import KafkaConsumer
    from kafka.structs import TopicPartition as PythonTopicPartition

SETTINGS = {"group.min.session.timeout.ms": 500, "offsets.topic.num.partitions": 3}
PATIENCE_S = 40


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        running.create_topic("t", 4)
        fill(running, "t", 4)
        yield running


def fill(broker: Broker, topic: str, partitions: int, count: int = 40) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, f"{number}".encode(), partition=number % partitions)
    assert producer.flush(PATIENCE_S) == 0


def until(condition: Callable[[], bool]) -> None:
    """Poll until it holds; fails at the deadline."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"


def librdkafka(broker: Broker, group: str, **settings: Any) -> Consumer:
    given = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    if settings.get("group.protocol") != "consumer":
        given |= {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 100}
    return Consumer({**given, **settings})


def partitions_of(consumer: Consumer) -> list[int]:
    consumer.poll(0.02)
    return sorted(each.partition for each in consumer.assignment())


def share(*consumers: Consumer) -> bool:
    """All partitions of "t" are spread over these, evenly."""
    parts = [partitions_of(consumer) for consumer in consumers]
    return sorted(chain(*parts)) == [0, 1, 2, 3] and len({len(part) for part in parts}) == 1


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
def test_librdkafka_shares_and_hands_over(broker: Broker, strategy: str) -> None:
    group = f"rdk-{strategy}"
    first, second = (librdkafka(broker, group, **{"partition.assignment.strategy": strategy}) for _ in range(2))
    first.subscribe(["t"])
    until(lambda: share(first))
    second.subscribe(["t"])
    until(lambda: partitions_of(first) != [] and share(first, second))
    second.close()
    until(lambda: share(first))
    first.close()


def test_librdkafka_reads_everything_once_and_goes_on_where_it_was(broker: Broker) -> None:
    first = librdkafka(broker, "rdk-resume")
    first.subscribe(["t"])
    seen: list[bytes] = []

    def read(consumer: Consumer) -> int:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            seen.append(message.value() or b"")
        return len(seen)

    until(lambda: read(first) == 40)
    assert len(set(seen)) == 40
    first.commit(asynchronous=False)
    first.close()
    again = librdkafka(broker, "rdk-resume")
    again.subscribe(["t"])
    until(lambda: share(again))
    committed = again.committed([TopicPartition("t", number) for number in range(4)], PATIENCE_S)
    assert [each.offset for each in committed] == [10, 10, 10, 10]
    assert again.poll(0.5) is None
    again.close()


def test_metadata_and_leader_epochs_come_back(broker: Broker) -> None:
    consumer = librdkafka(broker, "rdk-metadata")
    consumer.commit(offsets=[TopicPartition("t", 0, 3, "where I was", 0)], asynchronous=False)
    (found,) = consumer.committed([TopicPartition("t", 0)], PATIENCE_S)
    assert (found.offset, found.metadata, found.leader_epoch) == (3, "where I was", 0)
    consumer.close()


def test_a_static_member_restarts_without_a_rebalance(broker: Broker) -> None:
    events: list[str] = []

    def member(instance: str) -> Consumer:
        consumer = librdkafka(broker, "rdk-static", **{"group.instance.id": instance, "session.timeout.ms": 6_000})
        consumer.subscribe(
            ["t"],
            on_assign=lambda _, parts: events.append(f"{instance} got {len(parts)}"),
            on_revoke=lambda _, parts: events.append(f"{instance} gave {len(parts)}"),
        )
        return consumer

    first, second = member("i1"), member("i2")
    until(lambda: share(first, second))
    had = partitions_of(second)
    events.clear()
    second.close()
    events.clear()
    second = member("i2")
    until(lambda: partitions_of(second) == had)
    until(lambda: partitions_of(first) != [])
    assert events == ["i2 got 2"]
    first.close()
    second.close()


def python_consumer(broker: Broker, group: str, **settings: Any) -> Any:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=100,
        **settings,
    )
    subscribe(consumer, "t")
    return consumer


def test_kafka_python(broker: Broker) -> None:
    with ExitStack() as stack:  # one left open would go on looking for its broker through all other tests
        first = stack.enter_context(closing(python_consumer(broker, "python")))

        seen: list[tuple[int, int]] = []

        def read() -> bool:
            for records in first.poll(100).values():
                seen.extend((each.partition, each.offset) for each in records)
            return len(set(seen)) == 40

        until(read)
        assert len(seen) == 40
        first.commit()
        second = stack.enter_context(closing(python_consumer(broker, "python")))

        def shared() -> bool:
            first.poll(20)
            second.poll(20)
            return len(first.assignment()) == len(second.assignment()) == 2

        until(shared)
        assert {first.committed(PythonTopicPartition("t", number)) for number in range(4)} == {10}
        first.close()
        until(lambda: (second.poll(20), len(second.assignment()) == 4)[1])


def test_aiokafka(broker: Broker) -> None:
    async def main() -> None:
        def consumer() -> Any:
            return AIOKafkaConsumer(
                "t",
                bootstrap_servers=broker.bootstrap,
                group_id="aio",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=6_000,
                heartbeat_interval_ms=100,
            )

        first, second = consumer(), consumer()
        await first.start()
        count = 0
        while count < 40:
            count += sum(len(records) for records in (await first.getmany(timeout_ms=100)).values())
        await first.commit()
        await second.start()
        while not len(first.assignment()) == len(second.assignment()) == 2:
            await first.getmany(timeout_ms=20)
        assert [await second.committed(each) for each in second.assignment()] == [10, 10]
        await second.stop()
        while len(first.assignment()) != 4:
            await first.getmany(timeout_ms=20)
        await first.stop()

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


def test_many_members_at_once(broker: Broker) -> None:
    """All of them start, stop and start again at the same moment; in the end each partition has one reader."""
    broker.create_topic("many", 12)
    results: list[set[int]] = [set() for _ in range(6)]
    stop = threading.Event()
    failures: list[str] = []

    def live(number: int) -> None:
        for life in range(2):
            consumer = librdkafka(broker, "many")
            consumer.subscribe(["many"])
            rounds = 0
            while not stop.is_set() if life else rounds < 10:
                rounds += 1
                message = consumer.poll(0.05)
                if message is not None and message.error() is not None:
                    failures.append(str(message.error()))
                results[number] = {each.partition for each in consumer.assignment()} if life else set()
            consumer.close()

    threads = [threading.Thread(target=live, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: stop.wait(0.05) or sorted(chain(*results)) == list(range(12)))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []


@pytest.mark.parametrize("interval_ms", [0, 500])
def test_consumer_protocol_of_librdkafka(interval_ms: int) -> None:
    settings = {
        **SETTINGS,
        "group.consumer.min.heartbeat.interval.ms": 100,
        "group.consumer.assignment.interval.ms": interval_ms,
    }
    with Broker(settings | quick_heartbeats()) as broker:
        broker.create_topic("t", 4)
        fill(broker, "t", 4)
        first, second = (librdkafka(broker, "new", **{"group.protocol": "consumer"}) for _ in range(2))
        first.subscribe(["t"])
        until(lambda: share(first))
        second.subscribe(["^t.*"])
        until(lambda: share(first, second))
        (found,) = first.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
        assert found.error is None
        second.close()
        until(lambda: share(first))
        first.close()


def quick_heartbeats() -> dict[str, Any]:
    return {"group.consumer.heartbeat.interval.ms": 200, "group.consumer.max.heartbeat.interval.ms": 5_000}


def test_classic_and_new_members_in_one_group() -> None:
    with Broker({**SETTINGS, "group.consumer.min.heartbeat.interval.ms": 100} | quick_heartbeats()) as broker:
        broker.create_topic("t", 4)
        old = librdkafka(broker, "mixed", **{"partition.assignment.strategy": "cooperative-sticky"})
        old.subscribe(["t"])
        until(lambda: share(old))
        new = librdkafka(broker, "mixed", **{"group.protocol": "consumer"})
        new.subscribe(["t"])
        until(lambda: share(old, new))
        new.close()
        until(lambda: share(old))
        old.close()


@pytest.mark.parametrize("killed", [False, True])
def test_groups_and_offsets_survive(tmp_path: Path, killed: bool) -> None:
    with Broker(SETTINGS, data=str(tmp_path)) as broker:
        broker.create_topic("t", 4)
        consumer = librdkafka(broker, "kept")
        consumer.subscribe(["t"])
        until(lambda: share(consumer))
        consumer.commit(offsets=[TopicPartition("t", 1, 6, "note")], asynchronous=False)
        if killed:
            broker.kill()
        else:
            consumer.close()
    with Broker(SETTINGS, data=str(tmp_path)) as broker:
        again = librdkafka(broker, "kept")
        (found,) = again.committed([TopicPartition("t", 1)], PATIENCE_S)
        assert (found.offset, found.metadata) == (6, "note")
        again.close()
    if killed:
        consumer.close()


@pytest.mark.slow
def test_librdkafka_may_change_its_subscription_again_and_again(broker: Broker) -> None:
    """After a leave that is answered at once it may join with half a heartbeat (`consumer.rules`)."""
    chance = random.Random(45)
    topics = [f"many-{number}" for number in range(6)]
    for topic in topics:
        broker.create_topic(topic, 1)
    with closing(librdkafka(broker, "many", **{"group.protocol": "consumer"})) as consumer:
        for _ in range(200):
            if chance.random() < 0.4:
                consumer.unsubscribe()
            consumer.subscribe(chance.sample(topics, chance.randrange(1, 4)))
            for _ in range(chance.randrange(4)):
                consumer.poll(chance.choice((0, 0.001, 0.02, 0.1)))
        consumer.subscribe(topics[:2])

        def is_settled() -> bool:
            consumer.poll(0.05)
            return sorted(each.topic for each in consumer.assignment()) == topics[:2]

        until(is_settled)
