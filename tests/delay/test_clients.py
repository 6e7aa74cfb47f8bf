"""A topic with delivery.delay.mode=record, seen by clients that know nothing of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ixion.testing import Broker

RECORD = {"delivery.delay.mode": "record"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def producer_of(broker: Broker, **more: str) -> Producer:
    given = {name.replace("_", "."): value for name, value in more.items()}
    return Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50, **given})


def consumer_of(broker: Broker, topic: str, **more: str) -> Consumer:
    given = {name.replace("_", "."): value for name, value in more.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"of-{topic}",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            **given,
        }
    )
    consumer.subscribe([topic])
    return consumer


def consume(consumer: Consumer, count: int) -> list[tuple[Message, int]]:
    """Messages, and when each arrived by this process's clock, which is the broker's."""
    found: list[tuple[Message, int]] = []
    end = time.monotonic() + 60
    while len(found) < count and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append((message, time.time_ns() // 1_000_000))
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a12_each_record_of_a_mixed_batch_arrives_once_when_it_is_due(broker: Broker, codec: str) -> None:
    topic = f"mixed-{codec}"
    broker.create_topic(topic, 1, **RECORD)
    producer = producer_of(broker, compression_type=codec, enable_idempotence="true")
    offsets: dict[bytes, int] = {}

    def told(error: object, message: Message) -> None:
        assert error is None
        offsets[message.value() or b""] = message.offset() or 0

    for number in range(20):
        delay = number % 2 * 300
        headers: dict[str, str | bytes | None] = {"x-deliver-after-ms": b"%d" % delay} if delay else {}
        producer.produce(topic, b"%d" % number, headers=headers, on_delivery=told)
    sent_ms = time.time_ns() // 1_000_000
    assert producer.flush(30) == 0
    assert sorted(offsets.values()) == list(range(20))
    consumer = consumer_of(broker, topic)
    found = consume(consumer, 20)
    consumer.close()
    assert sorted(int(message.value() or b"") for message, _ in found) == list(range(20))
    for message, arrived_ms in found:
        given = dict(message.headers() or [])
        if int(message.value() or b"") % 2:
            assert arrived_ms >= int(given["x-scheduled-for"] or 0) >= sent_ms + 300 - 5
            assert int(given["x-schedule-offset"] or 0) == offsets[message.value() or b""]
            assert "x-deliver-after-ms" not in given
        else:
            assert not given


def test_a14_a_consumer_reaches_the_end_of_a_partition_that_is_only_holes(broker: Broker) -> None:
    broker.create_topic("holes", 1, **RECORD)
    producer = producer_of(broker)
    for _ in range(10):
        producer.produce("holes", b"later", headers=[("x-deliver-after-ms", b"3600000")])
        producer.flush(30)
    consumer = consumer_of(broker, "holes")
    end = time.monotonic() + 30
    reached = -1
    while reached < 0 and time.monotonic() < end:
        message = consumer.poll(1)
        if message is not None and message.error() is not None:
            reached = message.offset() or 0  # partition EOF
    _, high = consumer.get_watermark_offsets(TopicPartition("holes", 0), timeout=30)
    consumer.close()
    assert reached == high == 10


def fill_with_holes(broker: Broker, topic: str) -> None:
    """Holes before, between and after two records."""
    broker.create_topic(topic, 1, **RECORD)
    producer = producer_of(broker)
    for value in (b"", b"", b"first", b"", b"second", b"", b""):
        headers: dict[str, str | bytes | None] = {} if value else {"x-deliver-after-ms": "3600000"}
        producer.produce(topic, value, headers=headers)
        producer.flush(30)


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
def test_a14_kafka_python_reads_over_holes_and_its_lag_reaches_0(broker: Broker) -> None:
    import kafka

    fill_with_holes(broker, "over-holes-1")
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", group_id=None)
    place = kafka.TopicPartition("over-holes-1", 0)
    consumer.assign([place])
    found: list[bytes] = []
    end = time.monotonic() + 60
    while consumer.position(place) < 7 and time.monotonic() < end:
        for some in consumer.poll(500).values():
            found += [record.value for record in some]
    assert (found, consumer.position(place)) == ([b"first", b"second"], 7)
    consumer.close()


def test_a14_aiokafka_reads_over_holes_and_its_lag_reaches_0(broker: Broker) -> None:
    import aiokafka

    fill_with_holes(broker, "over-holes-2")
    place = aiokafka.TopicPartition("over-holes-2", 0)

    async def read() -> tuple[list[bytes], int]:
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        consumer.assign([place])
        found: list[bytes] = []
        end = time.monotonic() + 60
        while await consumer.position(place) < 7 and time.monotonic() < end:
            for some in (await consumer.getmany(timeout_ms=500)).values():
                found += [record.value for record in some]
        position = await consumer.position(place)
        await consumer.stop()
        return found, position

    assert asyncio.run(read()) == ([b"first", b"second"], 7)


def test_a16_a_record_with_a_bad_header_is_refused_with_the_reason(broker: Broker) -> None:
    broker.create_topic("refused", 1, **RECORD)
    producer = producer_of(broker)
    errors: list[object] = []

    def told(error: KafkaError | None, _: Message) -> None:
        errors.append(error and error.name())

    producer.produce("refused", b"x", headers=[("x-deliver-at", b"soon")], on_delivery=told)
    producer.flush(30)
    assert errors == ["INVALID_RECORD"]


def test_a13_acknowledge_and_try_again_later_in_one_transaction(broker: Broker) -> None:
    broker.create_topic("orders", 1, **RECORD)
    plain = producer_of(broker)
    plain.produce("orders", b"order")
    plain.flush(30)
    consumer = consumer_of(broker, "orders", isolation_level="read_committed", enable_auto_commit="false")
    producer = producer_of(broker, transactional_id="retrier")
    producer.init_transactions(30)
    attempts = []
    for commits in (False, True):
        ((message, _),) = consume(consumer, 1)
        producer.begin_transaction()
        producer.produce("orders", message.value(), headers=[("x-deliver-after-ms", b"200")])
        producer.flush(30)
        position = [TopicPartition("orders", 0, (message.offset() or 0) + 1)]
        producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 30)
        if commits:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
            consumer.seek(TopicPartition("orders", 0, message.offset() or 0))
        attempts.append(message.offset())
    ((again, _),) = consume(consumer, 1)
    consumer.close()
    assert attempts == [0, 0]
    assert again.value() == b"order"
    assert dict(again.headers() or [])["x-schedule-offset"] == b"3", "that of the transaction that counts"


def test_a18_what_waits_in_a_deleted_topic_is_dropped_and_counted(broker: Broker) -> None:
    broker.create_topic("doomed", 1, **RECORD)
    producer = producer_of(broker)
    producer.produce("doomed", b"x", headers=[("x-deliver-after-ms", b"100000")])
    producer.flush(30)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics(["doomed"])["doomed"].result(30)

    async def look(real: object) -> tuple[int, list[str]]:
        parts = real.parts  # type: ignore[attr-defined]
        return parts.schedules.figures.dropped, [name for name, _ in parts.logs.logs if "doomed" in name]

    end_s = time.monotonic() + 60
    while (found := broker.call(look)) != (1, []):
        assert time.monotonic() < end_s, found
        time.sleep(0.02)


def test_no_topic_can_have_the_name_of_a_sibling(broker: Broker) -> None:
    with pytest.raises(Exception, match="delayed records"):
        broker.create_topic("__delay.mixed", 1)
