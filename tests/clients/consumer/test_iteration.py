"""Records one by one: what a caller leaves in the middle comes again; deserializers, which may fail there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from ixion.clients import Consumer, aio
from ixion.clients.consumer.decoding import DeserializationError
from tests.clients.faces import FACES, Face
from tests.clients.fake import FakeCluster
from tests.clients.test_reader import ORDERS, fill

PLACE = ORDERS[0]


@pytest.fixture
def fakes() -> Iterator[FakeCluster]:
    with FakeCluster() as running:
        running.add_topic("orders", leaders=[1])
        fill(running, PLACE, 4, size=50)
        yield running


def reading(fakes: FakeCluster, **settings: Any) -> Consumer:
    consumer = Consumer(fakes.bootstrap, **settings)
    consumer.assign([PLACE])
    consumer.seek(PLACE, 0)
    return consumer


def offsets(records: Any, count: int) -> list[int]:
    return [record.offset for record in islice(records, count)]


def test_all_of_it_in_order_and_the_position_moves_with_each(fakes: FakeCluster) -> None:
    with reading(fakes) as consumer:
        for number, record in enumerate(islice(consumer, 200)):
            assert record.offset == number
            assert consumer.position(PLACE) == number + 1
        assert consumer.metrics()["records-consumed-total"] == 200


@pytest.mark.parametrize("count", [1, 2, 40, 66, 130])
def test_a_caller_that_stops_gets_the_next_record_by_whatever_it_calls(fakes: FakeCluster, count: int) -> None:
    with reading(fakes) as consumer:
        assert offsets(consumer, count) == list(range(count))
        assert [record.offset for record in consumer.poll(60, 10)] == list(range(count, count + 10))
        assert offsets(consumer, 3) == list(range(count + 10, count + 13))
        batch = next(consumer.batches())
        assert batch.offsets[0] == count + 13
        assert consumer.metrics()["records-consumed-total"] == count + 13 + len(batch)


def test_a_seek_and_a_pause_in_the_middle(fakes: FakeCluster) -> None:
    with reading(fakes) as consumer:
        records = iter(consumer)
        assert offsets(records, 10) == list(range(10))
        consumer.seek(PLACE, 150)
        assert offsets(records, 5) == list(range(150, 155))
        consumer.pause(PLACE)
        assert consumer.poll(0) == []
        consumer.resume(PLACE)
        assert offsets(records, 5) == list(range(155, 160))


@pytest.mark.parametrize("face", FACES, ids=lambda face: face.name)
def test_a_poll_inside_of_a_loop_takes_records_that_the_loop_does_not_return_again(
    fakes: FakeCluster, face: Face
) -> None:
    with face.consumer(fakes.bootstrap) as consumer:
        consumer.assign([PLACE])
        consumer.seek(PLACE, 0)
        found: list[int] = []
        for record in consumer.records(40):
            found.append(record.offset)
            if record.offset % 7 == 0:
                found += [each.offset for each in consumer.poll(60, 5)]
        assert found == list(range(len(found)))
        assert consumer.position(PLACE) == len(found)


def test_deserializers_make_keys_and_values(fakes: FakeCluster) -> None:
    with reading(fakes, value_deserializer=bytes.decode, key_deserializer=bytes.decode) as consumer:
        assert [record.value for record in consumer.poll(60, 3)] == ["0-0", "0-1", "0-2"]
        record = next(iter(consumer))
        assert (record.key, record.value, record.record.value) == (None, "0-3", b"0-3")


def test_a_value_that_cannot_be_deserialized_is_raised_when_it_is_reached(fakes: FakeCluster) -> None:
    def picky(value: bytes) -> int:
        return 1 // (value != b"0-7")

    with reading(fakes, value_deserializer=picky) as consumer:
        found: list[Any] = []
        while len(found) < 7:
            found += consumer.poll(60)
        assert [record.offset for record in found] == list(range(7))
        for _ in range(2):
            with pytest.raises(DeserializationError, match="the value of the record at offset 7 of orders-0") as caught:
                consumer.poll(60)
            assert (caught.value.partition, caught.value.offset) == (PLACE, 7)
            assert isinstance(caught.value.__cause__, ZeroDivisionError)
            assert consumer.position(PLACE) == 7
        with pytest.raises(DeserializationError):
            next(iter(consumer))
        consumer.seek(PLACE, 8)
        assert offsets(consumer, 2) == [8, 9]


def test_asyncio_does_the_same(fakes: FakeCluster) -> None:
    async def take(consumer: aio.Consumer, count: int) -> list[Any]:
        found: list[Any] = []
        async for record in consumer:
            found.append(record.value)
            if len(found) == count:
                break
        return found

    async def run() -> None:
        async with aio.Consumer(fakes.bootstrap, value_deserializer=bytes.decode) as consumer:
            await consumer.assign([PLACE])
            await consumer.seek(PLACE, 0)
            assert await take(consumer, 3) == ["0-0", "0-1", "0-2"]
            assert [record.value for record in await consumer.poll(60, 2)] == ["0-3", "0-4"]
        async with aio.Consumer(fakes.bootstrap, value_deserializer=int) as consumer:
            await consumer.assign([PLACE])
            await consumer.seek(PLACE, 0)
            with pytest.raises(DeserializationError):
                await consumer.poll(60)
            assert await consumer.position(PLACE) == 0
        async with aio.Consumer(fakes.bootstrap) as consumer:
            await consumer.assign([PLACE])
            await consumer.seek(PLACE, 0)
            assert await take(consumer, 70) == [b"0-%d" % number for number in range(70)]
            assert await consumer.position(PLACE) == 70
            assert (await take(consumer, 1)) == [b"0-70"]

    asyncio.run(run())


def test_what_is_no_deserializer_is_refused() -> None:
    for name in ("key_deserializer", "value_deserializer"):
        wrong: dict[str, Any] = {name: "utf-8"}
        with pytest.raises(TypeError, match=f"{name} must be a function of bytes, not 'utf-8'"):
            Consumer("127.0.0.1:9092", **wrong)
