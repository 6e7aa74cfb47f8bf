"""A topic with a fixed delay, seen by a client that knows nothing of it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.testing import Broker
from tests.apis.asking import Asking
from tests.apis.settings import SET, TOPIC
from tests.apis.settings import change as change_config

DELAY_MS = 700


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def produce(broker: Broker, topic: str, *values: bytes) -> list[int]:
    """The append times, by the broker's clock."""
    told: list[int] = []

    def delivered(error: object, message: Message) -> None:
        assert error is None
        told.append(message.timestamp()[1])

    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=delivered)
        producer.flush(30)
    return told


def consume(broker: Broker, topic: str, count: int, group: str = "g") -> list[tuple[bytes, int]]:
    """Values, and when each arrived by this process's clock, which is the broker's."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[tuple[bytes, int]] = []
    end = time.monotonic() + 60
    while len(found) < count and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append((message.value() or b"", time.time_ns() // 1_000_000))
    consumer.close()
    return found


def latest(broker: Broker, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "latest"})
    _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.close()
    return int(high)


def change(broker: Broker, topic: str, **settings: str) -> None:
    wanted = [(name.replace("_", "."), SET, value) for name, value in settings.items()]
    with Asking(broker.bootstrap) as asking:
        assert change_config(asking, TOPIC, topic, wanted)[0] == ErrorCode.NONE


def create(broker: Broker, topic: str, settings: dict[str, str]) -> None:
    broker.create_topic(topic, 1, **settings)


def test_a_group_gets_each_record_when_it_is_due(broker: Broker) -> None:
    create(broker, "retries", {"delivery.delay.mode": "fixed", "delivery.delay.ms": str(DELAY_MS)})
    appended = produce(broker, "retries", b"1", b"2", b"3")
    if latest(broker, "retries") > 0:  # to a consumer, what is not due is not there; on a busy machine it may be due
        assert time.time_ns() // 1_000_000 >= appended[0] + DELAY_MS
    arrived = consume(broker, "retries", 3)
    assert [value for value, _ in arrived] == [b"1", b"2", b"3"]
    for (_, at_ms), append_ms in zip(arrived, appended, strict=True):
        assert at_ms >= append_ms + DELAY_MS
    assert latest(broker, "retries") == 3


def test_the_delay_of_a_topic_can_be_changed_and_taken_away(broker: Broker) -> None:
    broker.create_topic("changing")
    change(broker, "changing", delivery_delay_mode="fixed", delivery_delay_ms="3600000")
    produce(broker, "changing", b"later")
    assert latest(broker, "changing") == 0
    change(broker, "changing", delivery_delay_mode="off")
    assert [value for value, _ in consume(broker, "changing", 1, "changing")] == [b"later"]


def test_committed_transactions_come_late_and_aborted_ones_never(broker: Broker) -> None:
    create(broker, "txn", {"delivery.delay.mode": "fixed", "delivery.delay.ms": "3600000"})
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x"})
    producer.init_transactions(30)
    for value, commits in ((b"no", False), (b"yes", True)):
        producer.begin_transaction()
        producer.produce("txn", value)
        producer.flush(30)
        producer.commit_transaction(30) if commits else producer.abort_transaction(30)
    assert latest(broker, "txn") == 0
    change(broker, "txn", delivery_delay_ms="1")
    assert [value for value, _ in consume(broker, "txn", 1, "txn")] == [b"yes"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delivery.delay.mode": "fixed"}, "unless delivery.delay.ms is set to 1 or more"),
        ({"delivery.delay.mode": "sometimes"}, "one of off, fixed"),
        ({"delivery.delay.ms": "-1"}, "0 to"),
        ({"delivery.delay.mode": "fixed", "delivery.delay.ms": "10", "retention.ms": "10"}, "less than retention.ms"),
        (
            {"delivery.delay.mode": "fixed", "delivery.delay.ms": "10", "message.timestamp.type": "CreateTime"},
            "LogAppendTime",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(broker: Broker, settings: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        create(broker, "refused", settings)


def test_pending_records_are_counted(broker: Broker) -> None:
    create(broker, "counted", {"delivery.delay.mode": "fixed", "delivery.delay.ms": "3600000"})
    produce(broker, "counted", b"1", b"2")

    async def pending(real: object) -> dict[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = real.parts.replicas.delays.pending()  # type: ignore[attr-defined]
        return found

    assert broker.call(pending)["counted", 0] == 2


@pytest.mark.parametrize("replica", [-1, -2, -3, -100])
def test_no_special_replica_id_reads_a_record_before_it_is_due(broker: Broker, replica: int) -> None:
    fixed = f"fixed{replica}"
    create(broker, fixed, {"delivery.delay.mode": "fixed", "delivery.delay.ms": "600000"})
    produce(broker, fixed, b"secret")
    with Asking(broker.bootstrap) as asking:
        for version in (4, 11, 12):
            for isolation in (0, 1):
                wish = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
                request = FetchRequest(
                    replica_id=replica,
                    max_wait_ms=0,
                    min_bytes=0,
                    max_bytes=1 << 20,
                    isolation_level=isolation,
                    topics=(FetchTopic(topic=fixed, partitions=(wish,)),),
                )
                (part,) = asking.ask(request, FetchResponse, version).responses[0].partitions
                assert not part.records
                assert (part.error_code, part.high_watermark) == (ErrorCode.NONE, 0)
        for timestamp in (1, -3):
            times = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            ask = ListOffsetsRequest(replica_id=replica, topics=(ListOffsetsTopic(name=fixed, partitions=(times,)),))
            (found,) = asking.ask(ask, ListOffsetsResponse, 7).topics[0].partitions
            assert (found.error_code, found.offset) == (ErrorCode.NONE, -1)
