"""Our producer against Apache Kafka 3.9.1 and 4.3.0: every codec, transactions, both faces. librdkafka reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devtools.kafka import RealKafka
from devtools.parts import need
from ixion.clients import Producer, TopicPartition, aio
from ixion.clients.faults import FencedError

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=["3.9.1", "4.3.0"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    version = str(request.param)
    need(f"kafka-{version}")
    with RealKafka(version, tmp_path_factory.mktemp("kafka")) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        for future in admin.create_topics([NewTopic(name, 3, 1) for name in ("plain", "txn", "async")]).values():
            future.result(60)
        yield running


def read(kafka: RealKafka, topic: str, count: int) -> list[bytes | None]:
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "check.crcs": True,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found: list[bytes | None] = []
    while len(found) < count:
        message = consumer.poll(60)
        assert message is not None, f"only {len(found)} of {count} records"
        assert message.error() is None
        found.append(message.value())
    assert consumer.poll(0.5) is None
    consumer.close()
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
