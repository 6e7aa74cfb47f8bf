"""Transactions of our producer, against a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ixion.clients import Producer, TopicPartition, aio
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.faults import FencedError
from ixion.clients.reader import Reader
from ixion.language.model.errors import KafkaError
from ixion.testing import Broker
from tests.clients.asking import end_offsets, fetch_offsets

pytestmark = pytest.mark.timeout(90)

PLACES = [TopicPartition("orders", number) for number in range(3)]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("orders", 3)
        yield running


def committed(broker: Broker) -> list[bytes | None]:
    ends = end_offsets(broker.bootstrap, PLACES, read_committed=True)
    found: list[bytes | None] = []
    with Reader(broker.bootstrap, dict.fromkeys(PLACES, 0), read_committed=True, max_wait_ms=50) as reader:
        while any(reader.offsets[place] < ends[place] for place in PLACES):
            for fetched in reader.poll(1.0):
                found += [record.value for record in fetched.records()]
    return sorted(found, key=lambda value: value or b"")


def make(broker: Broker, v2: bool) -> Producer:
    producer = Producer(broker.bootstrap, transactional_id="books")
    if not v2:
        hide_v2(producer)
    return producer


def hide_v2(producer: Producer | aio.Producer) -> None:
    """Speak as with brokers before KIP-890."""
    transactions = producer._machine.transactions
    assert transactions is not None
    transactions.newest_version = 1


@pytest.mark.parametrize("v2", [False, True])
def test_what_is_committed_is_read_and_what_is_aborted_is_not(broker: Broker, v2: bool) -> None:
    heard: list[Delivery] = []
    with make(broker, v2) as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for place in PLACES:
                producer.send("orders", b"%d" % number, partition=place.partition, on_delivery=heard.append)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        producer.begin_transaction()
        producer.commit_transaction()  # of nothing
        producer.begin_transaction()
        producer.abort_transaction()
        assert producer._machine.transactions is not None
        assert producer._machine.transactions.uses_v2 is v2
    assert len(heard) == 18
    assert committed(broker) == sorted([b"0", b"2", b"4"] * 3)


@pytest.mark.parametrize("v2", [False, True])
def test_offsets_are_committed_with_the_records(broker: Broker, v2: bool) -> None:
    with make(broker, v2) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"x", partition=0)
        producer.send_offsets({PLACES[1]: 7}, "readers")
        producer.abort_transaction()
        assert fetch_offsets(broker.bootstrap, "readers") == {}
        producer.begin_transaction()
        producer.send_offsets({PLACES[1]: 8, PLACES[2]: 9}, "readers")
        producer.commit_transaction()
        assert fetch_offsets(broker.bootstrap, "readers") == {PLACES[1]: 8, PLACES[2]: 9}


@pytest.mark.parametrize("v2", [False, True])
def test_a_producer_that_was_replaced_is_fenced(broker: Broker, v2: bool) -> None:
    first = make(broker, v2)
    first.init_transactions()
    first.begin_transaction()
    first.send("orders", b"lost").result()
    second = make(broker, v2)
    second.init_transactions()
    with pytest.raises(FencedError):
        first.commit_transaction()
    with pytest.raises(FencedError):
        first.begin_transaction()
    first.close()
    second.begin_transaction()
    second.send("orders", b"kept")
    second.commit_transaction()
    second.close()
    assert committed(broker) == [b"kept"]


def test_the_order_of_calls_is_kept(broker: Broker) -> None:
    with Producer(broker.bootstrap) as plain, pytest.raises(ValueError, match="has no transactional_id"):
        plain.begin_transaction()
    with make(broker, True) as producer:
        with pytest.raises(ValueError, match="the producer is before init_transactions"):
            producer.begin_transaction()
        producer.init_transactions()
        with pytest.raises(ValueError, match="the producer is between transactions; this needs one in a transaction"):
            producer.send("orders", b"x")
        with pytest.raises(ValueError, match="the producer is between transactions"):
            producer.commit_transaction()
        producer.begin_transaction()
        producer.send("orders", b"open")  # aborted by the close
    assert committed(broker) == []


def test_a_record_that_fails_leaves_only_the_abort(broker: Broker) -> None:
    with Producer(broker.bootstrap, transactional_id="books", max_request_size=4_000_000) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", bytes(2_000_000))
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            producer.commit_transaction()
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            producer.send("orders", b"y")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send("orders", b"z")
        producer.commit_transaction()
    assert committed(broker) == [b"z"]


@pytest.mark.parametrize("v2", [False, True])
def test_on_asyncio(broker: Broker, v2: bool) -> None:
    async def run() -> None:
        async with aio.Producer(broker.bootstrap, transactional_id="books") as producer:
            if not v2:
                hide_v2(producer)
            await producer.init_transactions()
            for number in range(4):
                await producer.begin_transaction()
                await producer.send("orders", b"%d" % number)
                await producer.send_offsets({PLACES[0]: number}, "readers")
                await (producer.abort_transaction() if number % 2 else producer.commit_transaction())

    asyncio.run(run())
    assert committed(broker) == [b"0", b"2"]
    assert fetch_offsets(broker.bootstrap, "readers") == {PLACES[0]: 2}
