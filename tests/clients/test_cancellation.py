"""Every await of our asyncio clients is a place where a task can be cancelled: what was begun there must be undone, and
the client must go on.

A scenario runs on a loop. Its task is cancelled at its k-th step, for k = 1, 2, 3 … until it ends before that: a step
is each time that it waits, so every await is met. After each cancellation the same client is used again. Members of
groups are cancelled at some of their steps; IXION_EVERY_STEP=1 has all of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from itertools import count
from typing import Any

import pytest

from ixion.clients import TopicPartition, aio
from ixion.clients.consumer.record import ConsumerRecord
from ixion.testing import Broker

pytestmark = pytest.mark.timeout(240)
NAMES = count()
EVERY_STEP = bool(os.environ.get("IXION_EVERY_STEP"))
PLACE = TopicPartition("t", 0)
QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    quick = {f"group.consumer.{limit}heartbeat.interval.ms": 50 for limit in ("", "min.")}
    with Broker(settings={"group.initial.rebalance.delay.ms": 0, **quick}) as running:
        running.create_topic("t", 1)
        yield running


class Stepwise:
    """Awaits a coroutine and throws CancelledError into it at its `at`-th step; `is_hit` says whether it got so far."""

    def __init__(self, inner: Coroutine[Any, Any, object], at: int) -> None:
        self._inner = inner
        self._at = at
        self.is_hit = False

    def __await__(self) -> Generator[Any, Any, object]:
        step = 0
        send: object = None
        while True:
            try:
                waited = self._inner.send(send)
            except StopIteration as end:
                return end.value
            step += 1
            if step == self._at:
                self.is_hit = True
                try:
                    left = self._inner.throw(asyncio.CancelledError())
                except (asyncio.CancelledError, StopIteration):
                    raise asyncio.CancelledError from None
                # It cleans up, and waits for that.
                while True:
                    try:
                        yield left
                        left = self._inner.send(None)
                    except StopIteration:
                        raise asyncio.CancelledError from None
            send = yield waited


async def cancel_at_every_step(
    make: Callable[[], Awaitable[Any]],
    scenario: Callable[[Any], Coroutine[Any, Any, object]],
    check: Callable[[Any], Coroutine[Any, Any, object]],
    *,
    is_long: bool = False,
) -> int:
    """How many steps there are. Each has a client of its own, which must still work afterwards."""
    at = 0
    while True:
        at = max(at + 1, at * 7 // 4) if is_long and not EVERY_STEP else at + 1  # 1 2 3 5 8 14 24 …
        client = await make()
        steps = Stepwise(scenario(client), at)
        try:
            await asyncio.wait_for(steps_of(steps), 60)
        except asyncio.CancelledError:
            assert steps.is_hit
        async with asyncio.timeout(60):
            await check(client)
            await client.close()
        if not steps.is_hit:
            assert len(asyncio.all_tasks()) == 1, "a task was left behind"
            return at


async def steps_of(steps: Stepwise) -> object:
    return await steps


def test_a_producer(broker: Broker) -> None:
    async def make() -> aio.Producer:
        return aio.Producer(broker.bootstrap, linger_ms=0)

    async def work(producer: aio.Producer) -> None:
        await producer.partitions_for("t")
        await (await producer.send("t", b"x"))
        await producer.flush()

    async def check(producer: aio.Producer) -> None:
        assert (await (await producer.send("t", b"after"))).offset >= 0
        await producer.flush()
        assert not producer._turns

    assert asyncio.run(cancel_at_every_step(make, work, check)) > 3


def test_transactions(broker: Broker) -> None:
    async def make() -> aio.Producer:
        return aio.Producer(broker.bootstrap, transactional_id=f"cancelled-{next(NAMES)}")

    async def work(producer: aio.Producer) -> None:
        await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("t", b"x")
        await producer.send_offsets({PLACE: 1}, "cancelled")
        await producer.abort_transaction()

    async def check(producer: aio.Producer) -> None:
        """Whatever was begun can be ended by the same calls."""
        transactions = producer._machine.the_transactions()
        if transactions.state < 2:
            await producer.init_transactions()
        if transactions.is_open or transactions.is_aborting:
            await producer.abort_transaction()
        while transactions.state != 2:
            await producer.init_transactions()
        await producer.begin_transaction()
        await producer.send("t", b"x")
        await producer.commit_transaction()

    assert asyncio.run(cancel_at_every_step(make, work, check, is_long=True)) > 5


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_in_a_group(broker: Broker, protocol: str) -> None:
    settings = dict(QUICK) if protocol == "classic" else {"auto_offset_reset": "earliest", "group_protocol": "consumer"}

    async def fill() -> None:
        async with aio.Producer(broker.bootstrap) as producer:
            await producer.send("t", b"x")

    async def make() -> aio.Consumer:
        return aio.Consumer(broker.bootstrap, group=f"cancelled-{next(NAMES)}", **settings)

    async def work(consumer: aio.Consumer) -> None:
        await consumer.subscribe(["t"])
        while not await consumer.poll(1, 1):
            pass
        await consumer.commit()
        await consumer.committed([PLACE])
        await consumer.end_offsets([PLACE])
        await consumer.unsubscribe()

    async def check(consumer: aio.Consumer) -> None:
        """No record is left out: the position is where the last poll that returned ended."""
        await consumer.unsubscribe()
        await consumer.subscribe(["t"])
        while not consumer.assignment():
            await consumer.poll(1)
        await consumer.seek(PLACE, 0)
        records: list[ConsumerRecord] = []
        while not records:
            records = await consumer.poll(1, 1)
        assert records[0].offset == 0

    asyncio.run(fill())
    assert asyncio.run(cancel_at_every_step(make, work, check, is_long=True)) > 5


def test_closing_a_consumer(broker: Broker) -> None:
    """A second close ends what the first was cancelled in."""

    async def make() -> aio.Consumer:
        consumer = aio.Consumer(broker.bootstrap, group=f"closed-{next(NAMES)}", topics=["t"], **QUICK)
        while not consumer.assignment():
            await consumer.poll(1)
        return consumer

    async def check(consumer: aio.Consumer) -> None:
        await consumer.close()

    asyncio.run(cancel_at_every_step(make, lambda consumer: consumer.close(5), check))


def test_an_administrator(broker: Broker) -> None:
    async def make() -> aio.Admin:
        return aio.Admin(broker.bootstrap)

    async def work(admin: aio.Admin) -> None:
        await admin.list_topics()
        await admin.describe_cluster()

    async def check(admin: aio.Admin) -> None:
        assert [topic.name for topic in await admin.list_topics()] == ["t"]

    asyncio.run(cancel_at_every_step(make, work, check))
