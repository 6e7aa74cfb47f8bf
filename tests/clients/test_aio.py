"""The producer on asyncio: the same promises, and nothing left in the loop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from ixion.clients.aio import Producer
from ixion.clients.core.producer.batch import Delivery
from ixion.clients.faults import TimedOutError, UnknownTopicError
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.clients.fake import FakeCluster, Fault
from tests.clients.test_producer import FAULTS, SMALL, calmly, numbered, refuse, stored

pytestmark = pytest.mark.timeout(60)


def run(act: Callable[[FakeCluster], Awaitable[None]], nodes: int = 1, leaders: tuple[int, ...] = (1,)) -> None:
    """Against fake brokers; no task may be left behind."""

    async def main() -> None:
        with FakeCluster(nodes=nodes) as fakes:
            fakes.add_topic("orders", leaders=list(leaders))
            await act(fakes)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left

    asyncio.run(main())


def test_a_record_is_accepted_and_then_acknowledged() -> None:
    async def act(fakes: FakeCluster) -> None:
        async with Producer(fakes.bootstrap, linger_ms=60_000) as producer:
            futures = [await producer.send("orders", value) for value in numbered(50)]
            assert not futures[-1].done()
            deliveries = [await future for future in futures]
            assert [delivery.offset for delivery in deliveries] == list(range(50))
            assert await producer.partitions_for("orders") == 1
            assert producer.metrics()["record-send-total"] == 50
        assert stored(fakes) == numbered(50)

    run(act)


def test_a_lingering_batch_is_sent_without_a_call() -> None:
    async def act(fakes: FakeCluster) -> None:
        settled = asyncio.Event()
        async with Producer(fakes.bootstrap, linger_ms=1) as producer:
            await producer.send("orders", b"x", on_delivery=lambda delivery: settled.set())
            await settled.wait()

    run(act)


def test_tasks_of_one_turn_share_a_batch() -> None:
    async def act(fakes: FakeCluster) -> None:
        async with Producer(fakes.bootstrap, linger_ms=60_000) as producer:
            await producer.partitions_for("orders")

            async def send_and_wait(number: int) -> Delivery:
                return await (await producer.send("orders", b"%d" % number))

            deliveries = await asyncio.gather(*(send_and_wait(number) for number in range(20)))
            assert sorted(delivery.offset for delivery in deliveries) == list(range(20))
            assert len(fakes.logs[TopicPartition("orders", 0)].batches) == 1

    run(act)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_doubled_or_overtaken(seed: int) -> None:
    choose = random.Random(seed)

    async def act(fakes: FakeCluster) -> None:
        for node in (1, 2):
            for _ in range(4):
                calm = choose.randrange(4)
                fakes.at(node, ApiKey.PRODUCE, *[calmly(fakes, node)] * calm, choose.choice(FAULTS))
        heard: list[list[Delivery]] = [[], [], []]
        async with Producer(fakes.bootstrap, batch_size=SMALL) as producer:
            for number in range(120):
                place = number % 3
                await producer.send("orders", b"%d" % number, partition=place, on_delivery=heard[place].append)
        for place in range(3):
            assert stored(fakes, place) == [b"%d" % number for number in range(place, 120, 3)]
            assert [delivery.offset for delivery in heard[place]] == list(range(40))

    run(act, nodes=2, leaders=(1, 2, 1))


def test_a_full_buffer_is_waited_for_first_come_first_served() -> None:
    async def act(fakes: FakeCluster) -> None:
        async with Producer(fakes.bootstrap, batch_size=SMALL, buffer_memory=500) as producer:
            await asyncio.gather(*(producer.send("orders", value, partition=0) for value in numbered(100)))
        assert stored(fakes) == numbered(100)

    run(act)


def test_failures_are_raised_where_they_are_awaited() -> None:
    async def act(fakes: FakeCluster) -> None:
        fakes.at(1, ApiKey.PRODUCE, refuse(ErrorCode.INVALID_RECORD))
        producer = Producer(fakes.bootstrap, allow_auto_create_topics=False)
        future = await producer.send("orders", b"x")
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            await future
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            await producer.flush()
        with pytest.raises(UnknownTopicError, match="did you mean 'orders'"):
            await producer.send("order", b"x")
        await producer.close()
        with pytest.raises(ValueError, match="the producer is closed"):
            await producer.send("orders", b"x")

    run(act)


def test_a_closed_producer_has_called_back_for_every_record() -> None:
    async def act(fakes: FakeCluster) -> None:
        fakes.at(1, ApiKey.PRODUCE, Fault.SILENCE)
        heard: list[Delivery] = []
        producer = Producer(fakes.bootstrap)
        futures = [await producer.send("orders", b"x", on_delivery=heard.append) for _ in range(3)]
        waiter = asyncio.create_task(wait_for(futures[0]))
        with pytest.raises(TimedOutError, match="not settled within"):
            await producer.close(timeout_s=0.05)
        assert isinstance(await waiter, KafkaError)
        assert [delivery.offset for delivery in heard] == [-1] * 3

    async def wait_for(future: Awaitable[Delivery]) -> KafkaError | None:
        try:
            await future
        except KafkaError as error:
            return error
        return None

    run(act)


def test_leaving_on_an_exception_fails_what_is_not_acknowledged() -> None:
    async def act(fakes: FakeCluster) -> None:
        heard: list[Delivery] = []

        async def fail() -> None:
            async with Producer(fakes.bootstrap, linger_ms=60_000) as producer:
                await producer.send("orders", b"x", on_delivery=heard.append)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert [delivery.offset for delivery in heard] == [-1]

    run(act)


def test_a_host_by_name_is_looked_up_by_the_loop() -> None:
    async def act(fakes: FakeCluster) -> None:
        async with Producer(fakes.bootstrap.replace("127.0.0.1", "localhost")) as producer:
            await (await producer.send("orders", b"x"))
        producer = Producer("no-such-host.invalid:9092", max_block_ms=50)
        with pytest.raises(TimedOutError, match=r"no metadata within 0\.05 s"):
            await producer.send("orders", b"x")
        await producer.close()

    run(act)


def test_outside_of_its_loop_there_is_one_clear_error() -> None:
    with pytest.raises(RuntimeError, match="no event loop is running: create this client inside a coroutine"):
        Producer("127.0.0.1:9092")

    async def make() -> Producer:
        return Producer("127.0.0.1:9092")

    async def use(producer: Producer) -> None:
        with pytest.raises(RuntimeError, match="belongs to another event loop"):
            await producer.send("orders", b"x")

    asyncio.run(use(asyncio.run(make())))


def test_against_a_broker() -> None:
    async def main(bootstrap: str) -> None:
        async with Producer(bootstrap, compression="zstd") as producer:
            futures = [await producer.send("orders", value, key=b"k") for value in numbered(500)]
            assert [(await future).offset for future in futures] == list(range(500))

    with Broker() as broker:
        asyncio.run(main(broker.bootstrap))
