"""Behaviours that kafka-python and aiokafka test of their clients, thought through again for ours.

docs/clients.md has the table of their files and ours. What they test of consumers first came into
consumer/test_other_clients_cases.py.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from ixion.clients import Admin, Consumer, Producer, RebalanceListener, TopicPartition, aio
from ixion.clients.admin.topics import NewTopic
from ixion.clients.faults import TimedOutError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.clients.fake import FakeCluster, Fault

pytestmark = pytest.mark.timeout(120)
NAMES = count()
QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 6_000}
OFTEN: dict[str, Any] = {**QUICK, "metadata_max_age_ms": 100}  # looks at the topics again and again


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(settings={"group.initial.rebalance.delay.ms": 0, "auto.create.topics.enable": False}) as running:
        yield running


@pytest.fixture
def name() -> str:
    return f"others-{next(NAMES)}"


def fill(broker: Broker, topic: str, *values: bytes, partition: int = 0) -> None:
    with Producer(broker.bootstrap) as producer:
        for value in values:
            producer.send(topic, value, partition=partition)


def read(consumer: Consumer, number: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < number:
        found += [record.value for record in consumer.poll(10)]
    return found


def poll_until(consumer: Consumer, is_so: Callable[[], bool]) -> None:
    while not is_so():
        consumer.poll(0.05)


def test_partitions_that_a_topic_gets_later_are_read_by_its_group(broker: Broker, name: str) -> None:
    broker.create_topic(name, 1)
    with Consumer(broker.bootstrap, group=name, topics=[name], **OFTEN) as consumer:
        poll_until(consumer, lambda: len(consumer.assignment()) == 1)
        with Admin(broker.bootstrap) as admin:
            admin.create_partitions({name: 3}).check()
        poll_until(consumer, lambda: len(consumer.assignment()) == 3)
        fill(broker, name, b"new", partition=2)
        assert read(consumer, 1) == [b"new"]


def test_a_pattern_takes_in_topics_that_come_later_and_no_internal_ones(broker: Broker, name: str) -> None:
    broker.create_topic(f"{name}-a", 1)
    with Consumer(broker.bootstrap, group=name, pattern=f"({name}.*|__.*)", **OFTEN) as consumer:
        poll_until(consumer, lambda: len(consumer.assignment()) == 1)
        assert consumer.subscription() == [f"{name}-a"]
        with Admin(broker.bootstrap) as admin:
            assert "__consumer_offsets" in [each.name for each in admin.list_topics(internal=True)]
        broker.create_topic(f"{name}-b", 1)
        fill(broker, f"{name}-b", b"x")
        assert read(consumer, 1) == [b"x"]
        assert consumer.subscription() == [f"{name}-a", f"{name}-b"]


def test_a_topic_that_is_not_there_yet_is_waited_for(broker: Broker, name: str) -> None:
    with Consumer(broker.bootstrap, group=name, topics=[name], **OFTEN) as consumer:
        assert consumer.poll(0.2) == []
        broker.create_topic(name, 1)
        fill(broker, name, b"x")
        assert read(consumer, 1) == [b"x"]


def test_a_record_larger_than_all_limits_of_a_fetch_is_handed_out(broker: Broker, name: str) -> None:
    broker.create_topic(name, 1)
    fill(broker, name, b"small", b"L" * 100_000, b"last")
    limits: dict[str, Any] = {"max_partition_fetch_bytes": 100, "fetch_max_bytes": 100}
    with Consumer(broker.bootstrap, auto_offset_reset="earliest", **limits) as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert read(consumer, 3) == [b"small", b"L" * 100_000, b"last"]


def test_a_commit_does_not_wait_behind_a_fetch_that_finds_nothing(broker: Broker, name: str) -> None:
    """The fetch is held by the broker for longer than the commit may take."""
    broker.create_topic(name, 1)
    settings = QUICK | {"fetch_max_wait_ms": 100_000, "request_timeout_ms": 110_000, "default_api_timeout_ms": 30_000}
    with Consumer(broker.bootstrap, group=name, topics=[name], **settings) as consumer:
        poll_until(consumer, lambda: bool(consumer.assignment()))
        place = TopicPartition(name, 0)
        assert consumer.position(place) == 0
        assert consumer.poll(0.05) == []  # the fetch is under way
        consumer.commit({place: 0})
        assert consumer.committed([place]) == {place: 0}


class Using(RebalanceListener):
    """Uses its consumer, as its documentation allows."""

    def __init__(self) -> None:
        self.consumer: Consumer | None = None
        self.heard: list[str] = []

    def hear(self, kind: str, partitions: Sequence[TopicPartition]) -> object:
        consumer = self.consumer
        assert consumer is not None
        self.heard.append(kind)
        if kind == "assigned":
            for place in partitions:
                consumer.seek(place, 1)
                assert consumer.position(place) == 1
            consumer.committed(partitions)
            consumer.end_offsets(partitions)
            consumer.pause(*partitions)
            consumer.resume(*partitions)
        else:
            consumer.commit()
        return None


def test_a_listener_may_use_its_consumer(broker: Broker, name: str) -> None:
    broker.create_topic(name, 1)
    fill(broker, name, b"0", b"1", b"2")
    listener = Using()
    with Consumer(broker.bootstrap, group=name, enable_auto_commit=False, **QUICK) as consumer:
        listener.consumer = consumer
        consumer.subscribe([name], listener)
        assert read(consumer, 2) == [b"1", b"2"]
    assert listener.heard == ["assigned", "revoked"]
    with Consumer(broker.bootstrap, group=name) as consumer:
        assert consumer.committed([TopicPartition(name, 0)]) == {TopicPartition(name, 0): 3}


class UsingOnLoop(RebalanceListener):
    def __init__(self) -> None:
        self.consumer: aio.Consumer | None = None

    async def hear(self, kind: str, partitions: Sequence[TopicPartition]) -> object:
        assert self.consumer is not None
        if kind == "assigned":
            for place in partitions:
                await self.consumer.seek(place, 1)
        else:
            await self.consumer.commit()
        return None


def test_a_listener_on_a_loop_may_use_its_consumer(broker: Broker, name: str) -> None:
    broker.create_topic(name, 1)
    fill(broker, name, b"0", b"1", b"2")

    async def work() -> None:
        listener = UsingOnLoop()
        async with aio.Consumer(broker.bootstrap, group=name, enable_auto_commit=False, **QUICK) as consumer:
            listener.consumer = consumer
            await consumer.subscribe([name], listener)
            found: list[bytes | None] = []
            while len(found) < 2:
                found += [record.value for record in await consumer.poll(10)]
            assert found == [b"1", b"2"]
        async with aio.Consumer(broker.bootstrap, group=name) as consumer:
            assert await consumer.committed([TopicPartition(name, 0)]) == {TopicPartition(name, 0): 3}

    asyncio.run(asyncio.wait_for(work(), 100))


def test_a_transaction_without_records_and_one_of_several_batches(broker: Broker, name: str) -> None:
    broker.create_topic(name, 1)
    with Producer(broker.bootstrap, transactional_id=name, batch_size=100, linger_ms=3_600_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.commit_transaction()
        producer.begin_transaction()
        producer.abort_transaction()
        producer.begin_transaction()
        futures = [producer.send(name, b"%050d" % number) for number in range(5)]
        producer.commit_transaction()  # flushes first
        assert all(future.done() for future in futures)
    with Consumer(broker.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(name, 0)])
        assert read(consumer, 5) == [b"%050d" % number for number in range(5)]


def test_offsets_of_an_open_transaction_are_no_committed_ones_yet(broker: Broker, name: str) -> None:
    broker.create_topic(name, 1)
    place = TopicPartition(name, 0)
    with (
        Producer(broker.bootstrap, transactional_id=name) as producer,
        Consumer(broker.bootstrap, group=name, default_api_timeout_ms=300) as consumer,
    ):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets({place: 5}, name)
        with pytest.raises(TimedOutError, match="not done within"):
            consumer.committed([place])
        producer.commit_transaction()
        while True:
            try:
                assert consumer.committed([place]) == {place: 5}
            except TimedOutError:
                continue  # a busy machine
            break


def test_closing_an_administrator_ends_the_calls_of_other_threads() -> None:
    ended: list[BaseException] = []
    with FakeCluster() as fakes:
        fakes.at(1, ApiKey.CREATE_TOPICS, Fault.SILENCE)
        admin = Admin(fakes.bootstrap)

        def work() -> None:
            try:
                admin.create_topics([NewTopic("orders", 1)]).check()
            except BaseException as error:
                ended.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        while not fakes.count(ApiKey.CREATE_TOPICS):
            pass
        admin.close()
        thread.join(60)
        assert not thread.is_alive()
    (error,) = ended
    assert isinstance(error, KafkaError)
    assert "the administrator was closed" in str(error)


@pytest.mark.parametrize("kind", [Producer, Consumer, Admin])
def test_addresses_may_be_a_list_of_text_only(kind: Callable[..., Any]) -> None:
    kind(["127.0.0.1:1", "127.0.0.1:2"]).close()
    with pytest.raises(TypeError, match="bootstrap must be a list of addresses"):
        kind([9092])


@pytest.fixture(scope="module")
def strict() -> Iterator[Broker]:
    """A broker that refuses every client."""
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin",
        "auto.create.topics.enable": False,
    }
    with Broker(settings=settings) as running:
        yield running


def test_what_is_not_allowed_is_said_at_once_by_every_client(strict: Broker) -> None:
    """None of them asks again until a time is up: another answer will not come."""
    with Producer(strict.bootstrap) as producer:
        with pytest.raises(KafkaError) as caught:
            producer.send("secret", b"x").result()
        assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with Producer(strict.bootstrap, transactional_id="t") as producer:
        with pytest.raises(KafkaError) as caught:
            producer.init_transactions()
        assert caught.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    with Consumer(strict.bootstrap) as consumer:
        consumer.assign([TopicPartition("secret", 0)])
        with pytest.raises(KafkaError) as caught:
            consumer.poll(60)
        assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with Consumer(strict.bootstrap, group="g", topics=["secret"]) as consumer:
        codes = {ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        with pytest.raises(KafkaError) as caught:
            consumer.poll(60)
        assert caught.value.code in codes
    with Consumer(strict.bootstrap, group="g") as consumer:
        with pytest.raises(KafkaError) as caught:
            consumer.committed([TopicPartition("secret", 0)])
        assert caught.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
    with Admin(strict.bootstrap) as admin:
        made = admin.create_topics([NewTopic("secret", 1)])
        assert made.faults["secret"].code in (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        )
