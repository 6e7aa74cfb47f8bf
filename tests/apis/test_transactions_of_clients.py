"""What applications do with transactions, through three Python clients: commit, abort, copy exactly once, fence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import KafkaError as AioKafkaError
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaException, Producer

from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.apis.reading import read_all
from tests.apis.test_k65_describe_transactions import describe
from tests.coordinators.group.members import subscribe

# Six rounds of ten records into "in", every second one aborted; then a copy to "out", in rounds of seven.
EXPECTED = [b"%d.%d" % (number, record) for number in (0, 2, 4) for record in range(10)]


@pytest.fixture
def fresh() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("in")
        running.create_topic("out")
        yield running


@pytest.fixture(scope="module")
def quick() -> Iterator[Broker]:
    """Looks twenty times a second for transactions that take too long."""
    with Broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": 50}) as running:
        running.create_topic("out")
        yield running


def use_confluent(bootstrap: str) -> str:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x"})
    producer.init_transactions(10)
    for number in range(6):
        producer.begin_transaction()
        for record in range(10):
            producer.produce("in", b"%d.%d" % (number, record))
        producer.flush(10)
        if number % 2 == 0:
            producer.commit_transaction(10)
        else:
            producer.abort_transaction(10)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "copier",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    consumer = Consumer(settings)
    consumer.subscribe(["in"])
    copied = 0
    while copied < 30:
        messages = consumer.consume(7, 1)
        if messages:
            producer.begin_transaction()
            for message in messages:
                producer.produce("out", message.value())
            offsets = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 10)
            producer.commit_transaction(10)
            copied += len(messages)
    consumer.close()
    producer.begin_transaction()
    producer.produce("out", b"of the zombie")
    producer.flush(10)
    Producer({"bootstrap.servers": bootstrap, "transactional.id": "x"}).init_transactions(10)
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(10)
    return str(caught.value.args[0].name())


def use_kafka_python(bootstrap: str) -> str:
    # Its import warns of its own deprecations, so it is inside the test, where they are passed over.
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import ProducerFencedError
    from kafka.structs import OffsetAndMetadata

    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="x")
    producer.init_transactions()
    for number in range(6):
        producer.begin_transaction()
        for record in range(10):
            producer.send("in", b"%d.%d" % (number, record))
        producer.flush()
        if number % 2 == 0:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id="copier",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    subscribe(consumer, "in")
    copied = 0
    while copied < 30:
        for partition, messages in consumer.poll(1000, max_records=7).items():
            producer.begin_transaction()
            for message in messages:
                producer.send("out", message.value)
            offsets = {partition: OffsetAndMetadata(messages[-1].offset + 1, "", -1)}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()
            copied += len(messages)
    consumer.close()
    heir = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="x")
    producer.begin_transaction()
    producer.send("out", b"of the zombie").get(10)
    heir.init_transactions()
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    heir.close()
    producer.close(timeout=0)
    return "fenced"


def use_aiokafka(bootstrap: str) -> str:
    async def run() -> str:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="x")
        await producer.start()
        for number in range(6):
            await producer.begin_transaction()
            for record in range(10):
                await producer.send("in", b"%d.%d" % (number, record))
            if number % 2 == 0:
                await producer.commit_transaction()
            else:
                await producer.abort_transaction()
        consumer = AIOKafkaConsumer(
            "in",
            bootstrap_servers=bootstrap,
            group_id="copier",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        await consumer.start()
        copied = 0
        while copied < 30:
            got = await consumer.getmany(timeout_ms=1000, max_records=7)
            for partition, messages in got.items():
                async with producer.transaction():
                    for message in messages:
                        await producer.send("out", message.value)
                    await producer.send_offsets_to_transaction({partition: messages[-1].offset + 1}, "copier")
                copied += len(messages)
        assert await consumer.committed(AioPartition("in", 0)) == messages[-1].offset + 1
        await consumer.stop()
        heir = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="x")
        await producer.begin_transaction()
        await producer.send_and_wait("out", b"of the zombie")
        await heir.start()
        with pytest.raises(ProducerFenced):
            await producer.commit_transaction()
        await heir.stop()
        await producer.stop()
        return "fenced"

    return asyncio.run(run())


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("use", "end"), [(use_confluent, "_FENCED"), (use_kafka_python, "fenced"), (use_aiokafka, "fenced")]
)
def test_committed_is_seen_once_and_aborted_never(fresh: Broker, use: Callable[[str], str], end: str) -> None:
    assert use(fresh.bootstrap) == end
    assert read_all(fresh.bootstrap, "in") == EXPECTED
    assert read_all(fresh.bootstrap, "out") == EXPECTED


def await_abort(bootstrap: str) -> None:
    """Until the coordinator has given up "slow"; who never gets there is stopped by the time limit of tests."""
    with Raw(bootstrap) as raw:
        while describe(raw, "slow")[0].transaction_state != "CompleteAbort":
            pass


def confluent_is_slow(bootstrap: str) -> str:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "slow", "transaction.timeout.ms": 1000})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("out", b"too late")
    producer.flush(10)
    await_abort(bootstrap)
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(10)
    return str(caught.value.args[0].name())


def kafka_python_is_slow(bootstrap: str) -> str:
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id="slow", transaction_timeout_ms=500)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("out", b"too late").get(10)
    await_abort(bootstrap)
    with pytest.raises(KafkaError) as caught:
        producer.commit_transaction()
    producer.close(timeout=0)
    return type(caught.value).__name__


def aiokafka_is_slow(bootstrap: str) -> str:
    async def run() -> str:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id="slow", transaction_timeout_ms=500)
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait("out", b"too late")
        await asyncio.to_thread(await_abort, bootstrap)
        with pytest.raises(AioKafkaError) as caught:
            await producer.commit_transaction()
        await producer.stop()
        return type(caught.value).__name__

    return asyncio.run(run())


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("use", "end"),
    [
        (confluent_is_slow, "_FENCED"),
        (kafka_python_is_slow, "ProducerFencedError"),
        (aiokafka_is_slow, "ProducerFenced"),
    ],
)
def test_a_producer_that_takes_too_long_is_aborted_and_gets_an_error(
    quick: Broker, use: Callable[[str], str], end: str
) -> None:
    assert use(quick.bootstrap) == end
    assert read_all(quick.bootstrap, "out") == []
