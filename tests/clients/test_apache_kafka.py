"""Our clients against Apache Kafka 3.9.1 and 4.3.0, both faces. librdkafka reads what our producer writes: every codec,
transactions. Our consumer reads what is committed, alone and in groups of both protocols."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.kafka import RealKafka
from ixion.clients import Consumer as OurConsumer
from ixion.clients import Producer, TopicPartition, aio
from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.core.consumer.commits import OffsetAndMetadata
from ixion.clients.faults import FencedError
from tests.servers import ApacheKafka

pytestmark = pytest.mark.timeout(300)

PARTITIONS = 3


@pytest.fixture(scope="module", params=["3.9.1", "4.3.0"])
def kafka(request: pytest.FixtureRequest, apache_kafka: ApacheKafka) -> RealKafka:
    running = apache_kafka(str(request.param))
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    names = ("plain", "txn", "async", "txn-read", "by-pattern-classic", "by-pattern-consumer")
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names]).values():
        future.result(60)
    return running


def read(kafka: RealKafka, topic: str, count: int) -> list[bytes | None]:
    """All records of the topic, up to the end of each partition."""
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "check.crcs": True,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    consumer.assign([Place(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    found: list[bytes | None] = []
    ends: set[int] = set()
    while len(ends) < PARTITIONS:
        message = consumer.poll(60)
        assert message is not None, f"only {len(found)} of {count} records"
        error = message.error()
        if error is None:
            found.append(message.value())
        else:
            assert error.code() == KafkaError._PARTITION_EOF
            ends.add(message.partition() or 0)
    consumer.close()
    assert len(found) == count
    return found


def test_every_codec(kafka: RealKafka) -> None:
    expected = []
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        with Producer(kafka.bootstrap, compression=codec, batch_size=500) as producer:
            for number in range(100):
                value = b"%s %d" % (codec.encode(), number)
                producer.send("plain", value, key=b"%d" % number, headers=[("h", b"x")])
                expected.append(value)
    assert sorted(map(bytes, filter(None, read(kafka, "plain", 500)))) == sorted(expected)


def test_transactions(kafka: RealKafka) -> None:
    with Producer(kafka.bootstrap, transactional_id="books") as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for partition in range(3):
                producer.send("txn", b"%d" % number, partition=partition)
            producer.send_offsets({TopicPartition("plain", 0): number}, "readers")
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        assert producer._machine.transactions is not None
        assert producer._machine.transactions.uses_v2 is (kafka.version == "4.3.0")
        producer.begin_transaction()
        producer.send("txn", b"lost").result()
        with Producer(kafka.bootstrap, transactional_id="books") as other:
            other.init_transactions()
        with pytest.raises(FencedError):
            producer.commit_transaction()
    assert sorted(map(bytes, filter(None, read(kafka, "txn", 9)))) == sorted([b"0", b"2", b"4"] * 3)


def test_on_asyncio(kafka: RealKafka) -> None:
    async def run() -> None:
        async with aio.Producer(kafka.bootstrap, batch_size=500) as producer:
            futures = [await producer.send("async", b"%d" % number, partition=0) for number in range(300)]
            assert [(await future).offset for future in futures] == list(range(300))

    asyncio.run(run())
    assert read(kafka, "async", 300) == [b"%d" % number for number in range(300)]


def poll_all(consumer: OurConsumer, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    while len(found) < count:
        more = consumer.poll(60)
        assert more, f"only {len(found)} of {count} records"
        found += more
    return found


def test_our_consumer_reads_committed_records_and_offsets(kafka: RealKafka) -> None:
    place = TopicPartition("txn-read", 0)
    with Producer(kafka.bootstrap, transactional_id="pages", batch_size=500) as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            for _ in range(100):
                producer.send("txn-read", b"%d" % number, partition=0)
            producer.flush()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    with OurConsumer(kafka.bootstrap, group="pages", isolation_level="read_committed") as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning()
        assert [record.value for record in poll_all(consumer, 200)] == [b"0"] * 100 + [b"2"] * 100
        assert consumer.end_offsets([place]) == {place: 404}
        assert consumer.offsets_for_times({place: 0}) == {place: 0}
        while consumer.position(place) < 404:  # behind the last marker
            consumer.poll(0.1)
        consumer.commit({place: OffsetAndMetadata(101, "a page")})
        assert consumer.committed_metadata([place]) == {place: OffsetAndMetadata(101, "a page", -1)}
        (session,) = consumer._machine.fetcher._sessions.values()
        assert session.session_id > 0
        assert session.epoch > 1
        seen = 0
        consumer.seek_to_beginning()
        for batch in consumer.batches(60):
            seen += len(batch)
            if seen == 200:
                break


def test_our_consumer_in_a_group_by_pattern(kafka: RealKafka) -> None:
    read_by_pattern(kafka, "classic")
    if kafka.version != "3.9.1":  # which has the consumer protocol for a preview only, and no patterns in it
        read_by_pattern(kafka, "consumer")


def read_by_pattern(kafka: RealKafka, protocol: str) -> None:
    topic = f"by-pattern-{protocol}"
    with Producer(kafka.bootstrap) as producer:
        for number in range(30):
            producer.send(topic, b"%d" % number, partition=number % 3)
    every = [TopicPartition(topic, number) for number in range(3)]
    settings: dict[str, Any] = {"group": topic, "pattern": f"by-.*-{protocol}", "group_protocol": protocol}
    with OurConsumer(kafka.bootstrap, auto_offset_reset="earliest", **settings) as consumer:
        assert len(poll_all(consumer, 30)) == 30
        assert consumer.assignment() == every
    with Producer(kafka.bootstrap) as producer:
        producer.send(topic, b"next", partition=0)

    async def go_on() -> None:
        async with aio.Consumer(kafka.bootstrap, **settings) as consumer:
            async for record in consumer:
                assert record.value == b"next"
                return

    asyncio.run(go_on())
