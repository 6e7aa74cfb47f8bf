"""Both faces of the share consumer, against real brokers that have share groups."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from datetime import timedelta
from typing import Any

import pytest

from ixion.clients import (
    Acknowledged,
    Admin,
    ConcurrentUseError,
    ConsumerClosedError,
    ConsumerUseError,
    DeserializationError,
    Producer,
    ShareGroupsUnsupportedError,
    TopicPartition,
    WakeupError,
)
from ixion.clients.admin.configs import Resource
from ixion.clients.admin.topics import NewTopic
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.resource_type import ResourceType
from ixion.testing import Broker
from tests.clients.faces import AIO, FACES, Face
from tests.servers import ApacheKafka

WAIT_S = 60.0
EXPLICIT: dict[str, Any] = {"share_acknowledgement_mode": "explicit"}
numbers = itertools.count()


@pytest.fixture(scope="module")
def ixion() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def kafka(apache_kafka: ApacheKafka) -> str:
    return apache_kafka("4.3.0").bootstrap


@pytest.fixture(params=["ixion", "kafka"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=FACES, ids=lambda face: face.name)
def face(request: pytest.FixtureRequest) -> Face:
    found: Face = request.param
    return found


@pytest.fixture
def queue(bootstrap: str) -> Iterator[str]:
    """A topic with two partitions, and a group of its name that begins at its first record."""
    name = f"queue-{next(numbers)}"
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(name, partitions=2)]).check()
        admin.alter_configs({Resource(ResourceType.GROUP, name): {"share.auto.offset.reset": "earliest"}}).check()
        yield name


def fill(bootstrap: str, topic: str, count: int, partition: int | None = 0) -> None:
    with Producer(bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % 2 if partition is None else partition)


def taken(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        more = consumer.poll(WAIT_S)
        assert more, f"only {len(found)} of {count} records"
        found += more
    return found


def waited(face: Face, result: Any, consumer: Any) -> KafkaError | None:
    """The error of an acknowledgement."""
    try:
        consumer.wait(result, WAIT_S)
    except KafkaError as error:
        return error
    return None


def test_every_kind_of_acknowledgement(bootstrap: str, queue: str, face: Face) -> None:
    fill(bootstrap, queue, 5)
    told: list[Acknowledged] = []
    with face.share_consumer(
        bootstrap, group=queue, topics=[queue], on_acknowledgement=told.append, **EXPLICIT
    ) as consumer:
        one, two, three, four, five = taken(consumer, 5)
        assert [record.value for record in (one, two, three)] == [b"0", b"1", b"2"]
        assert {record.delivery_count for record in (one, two, three, four, five)} == {1}
        results = [
            consumer.accept(one),
            consumer.release(two),
            consumer.reject(three),
            consumer.renew(four),
            consumer.release(five, delay=timedelta(seconds=0.2)),
        ]
        assert [waited(face, result, consumer) for result in results] == [None] * 5
        again = taken(consumer, 2)
        assert sorted((record.offset, record.delivery_count) for record in again) == [(1, 2), (4, 2)]
        for record in [four, *again]:
            consumer.accept(record)
        consumer.commit()
        with pytest.raises(ConsumerUseError, match="acknowledged already"):
            consumer.accept(one)
    assert [(each.first_offset, each.kind, each.error) for each in told[:3]] == [
        (0, "accept", None),
        (1, "release", None),
        (2, "reject", None),
    ]
    with face.share_consumer(bootstrap, group=queue, topics=[queue]) as consumer:
        assert consumer.poll(1.0) == []


def test_a_delay_is_kept_by_our_broker(ixion: str, face: Face) -> None:
    topic = f"later-{next(numbers)}"
    with Admin(ixion) as admin:
        admin.create_topics([topic]).check()
        admin.alter_configs({Resource(ResourceType.GROUP, topic): {"share.auto.offset.reset": "earliest"}}).check()
    fill(ixion, topic, 2)
    with face.share_consumer(ixion, group=topic, topics=[topic], **EXPLICIT) as consumer:
        first, second = taken(consumer, 2)
        asked_s = time.monotonic()
        consumer.wait(consumer.release(first, delay=0.3), WAIT_S)
        consumer.release(second)
        (now,) = taken(consumer, 1)
        (later,) = taken(consumer, 1)
        assert time.monotonic() - asked_s >= 0.299  # never early; the broker counts milliseconds
        assert [(now.offset, now.delivery_count), (later.offset, later.delivery_count)] == [(1, 2), (0, 2)]
        consumer.accept(now)
        consumer.accept(later)


def test_the_next_poll_accepts_and_closing_does(bootstrap: str, queue: str, face: Face) -> None:
    fill(bootstrap, queue, 6, None)
    with face.share_consumer(bootstrap, group=queue, topics=[queue], max_poll_records=4) as consumer:
        assert len(taken(consumer, 6)) == 6
    with face.share_consumer(bootstrap, group=queue, topics=[queue]) as consumer:
        while not consumer.assignment():
            assert consumer.poll(0.5) == []
        assert consumer.poll(2.0) == []


def test_a_block_that_fails_accepts_nothing(bootstrap: str, queue: str, face: Face) -> None:
    fill(bootstrap, queue, 2)
    consumer = face.share_consumer(bootstrap, group=queue, topics=[queue])
    taken(consumer, 2)
    consumer.__exit__(LookupError, LookupError(), None)  # as `with` calls it
    with face.share_consumer(bootstrap, group=queue, topics=[queue]) as consumer:
        assert {record.delivery_count for record in taken(consumer, 2)} == {2}


def test_a_strict_limit_and_a_value_that_cannot_be_read(bootstrap: str, queue: str, face: Face) -> None:
    fill(bootstrap, queue, 3)
    with face.share_consumer(
        bootstrap,
        group=queue,
        topics=[queue],
        value_deserializer=lambda data: {b"0": 0, b"2": 2}[data],
        share_acquire_mode="record_limit",
        max_poll_records=2,
        **EXPLICIT,
    ) as consumer:
        (first,) = taken(consumer, 1)
        assert first.value == 0
        with pytest.raises(DeserializationError) as caught:
            consumer.poll(WAIT_S)
        assert (caught.value.partition, caught.value.offset) == (TopicPartition(queue, 0), 1)
        consumer.accept(first)
        found: list[Any] = []
        while not any(record.value == 2 for record in found):
            try:
                found += consumer.poll(1.0)
            except DeserializationError:
                pass  # it comes back until its deliveries are used up
        assert consumer.metrics()["records-held"] <= 2


def test_a_poll_that_is_interrupted(bootstrap: str, queue: str, face: Face) -> None:
    with face.share_consumer(bootstrap, group=queue, topics=[queue]) as consumer:
        poll = consumer.start("poll", WAIT_S)
        while not consumer.metrics()["assigned-partitions"]:
            pass
        if face is not AIO:
            with pytest.raises(ConcurrentUseError):
                consumer.poll(0.0)
        consumer.wakeup()
        with pytest.raises(WakeupError):
            poll.result(WAIT_S)
        fill(bootstrap, queue, 2)
        assert len(taken(consumer, 2)) == 2
    if face is not AIO:
        with pytest.raises(ConsumerClosedError):
            consumer.poll(0.0)


def test_a_cancelled_poll_loses_nothing(bootstrap: str, queue: str) -> None:
    with AIO.share_consumer(bootstrap, group=queue, topics=[queue]) as consumer:
        while not consumer.assignment():
            consumer.poll(0.2)
        for _ in range(5):
            poll = consumer.start("poll", WAIT_S)
            poll.cancel()
            with pytest.raises(CancelledError):
                poll.result(WAIT_S)
        fill(bootstrap, queue, 3)
        found = taken(consumer, 3)
        assert [(record.offset, record.delivery_count) for record in found] == [(0, 1), (1, 1), (2, 1)]


def test_acknowledgements_from_other_threads(bootstrap: str, queue: str) -> None:
    fill(bootstrap, queue, 20, None)
    with FACES[0].share_consumer(bootstrap, group=queue, topics=[queue], **EXPLICIT) as consumer:
        records = taken(consumer, 20)
        errors: list[KafkaError | None] = []

        def work(some: list[Any]) -> None:
            errors.extend([consumer.accept(record).exception(WAIT_S) for record in some])

        threads = [threading.Thread(target=work, args=(records[at::4],)) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == [None] * 20


def test_two_members_share_one_partition(bootstrap: str, queue: str, face: Face) -> None:
    limit: dict[str, Any] = {"share_acquire_mode": "record_limit", "max_poll_records": 5, **EXPLICIT}
    topic = f"{queue}-single"
    with Admin(bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1)]).check()
    fill(bootstrap, topic, 10)
    with (
        face.share_consumer(bootstrap, group=queue, topics=[topic], **limit) as one,
        face.share_consumer(bootstrap, group=queue, topics=[topic], **limit) as two,
    ):
        first = taken(one, 5)
        second: list[Any] = []
        while len(second) < 5:
            second += two.poll(1.0)
        assert {record.offset for record in [*first, *second]} == set(range(10))


def test_markers_of_transactions_are_passed_over(bootstrap: str, queue: str, face: Face) -> None:
    with Producer(bootstrap, transactional_id=queue) as producer:
        producer.init_transactions()
        for number in range(3):
            with producer.transaction():
                producer.send(queue, b"%d" % number, partition=0)
    with face.share_consumer(bootstrap, group=queue, topics=[queue]) as consumer:
        assert [record.offset for record in taken(consumer, 3)] == [0, 2, 4]
        consumer.commit()
    with Admin(bootstrap) as admin:
        found = admin.list_share_group_offsets([queue]).check()[queue]
        assert found[TopicPartition(queue, 0)].lag == 0


def test_wrong_uses_are_named(face: Face) -> None:
    for wrong, text in (
        ({"isolation_level": "read_committed"}, "share.isolation.level"),
        ({"auto.offset.reset": "earliest"}, "share.auto.offset.reset"),
        ({"share_acquire_mode": "some"}, "allowed are 'batch_optimized', 'record_limit'"),
        ({"max_poll_recrods": 5}, "did you mean 'max_poll_records'"),
        ({"group": ""}, "group must be the name"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            face.share_consumer("127.0.0.1:9", **{"group": "g", **wrong})
    with face.share_consumer("127.0.0.1:9", group="g") as consumer:
        with pytest.raises(ConsumerUseError, match="subscribe"):
            consumer.poll(0.0)
        with pytest.raises(TypeError, match="only a record that poll returned"):
            consumer.accept(5)


def test_a_broker_without_share_groups_is_named(apache_kafka: ApacheKafka, face: Face) -> None:
    bootstrap = apache_kafka("3.9.1").bootstrap
    with (
        face.share_consumer(bootstrap, group="none", topics=["any"]) as consumer,
        pytest.raises(ShareGroupsUnsupportedError, match="does not offer ShareGroupHeartbeat") as caught,
    ):
        consumer.poll(WAIT_S)
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION
