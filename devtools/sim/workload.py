"""Clients of a simulated cluster: our own asyncio producers, idempotent with acks=all, and what they were promised.

One more wants acks=1. It may lose records, but it writes to leaders that are cut off, and so makes logs diverge.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final

from devtools.sim.loop import Node
from devtools.sim.world import World
from ixion.clients.aio import Producer
from ixion.clients.aio.producer import DeliveryFuture
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition

PACES_S: Final = (0.1, 0.25, 0.6)  # between two sends of a producer, on average


@dataclass(slots=True)
class Sent:
    """The records of one producer for one partition, in the order in which they were sent."""

    values: list[bytes] = field(default_factory=list)
    acknowledged: dict[bytes, int] = field(default_factory=dict)  # -> offset
    failed: dict[bytes, ErrorCode] = field(default_factory=dict)
    loose: bool = False  # acks=1


class Load:
    def __init__(self, world: World, keys: list[TopicPartition], seed: int, pace_s: float) -> None:
        self._world = world
        self._pace_s = pace_s
        self._keys = keys
        self._stopped = False
        self.sent: dict[tuple[int, TopicPartition], Sent] = {}
        self._seed = seed
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, producers: int) -> None:
        world = self._world
        for number in range(producers):
            node = Node(f"c{number}", f"10.0.1.{number}")
            world.clients.append(node)
            chance = random.Random(self._seed * 1_000 + number)
            loose = number == producers - 1  # the last one wants acks=1: it makes logs diverge, and is promised nothing
            self._tasks.append(world.loop.spawn(node, self._produce(number, chance, loose)))

    @property
    def acknowledged(self) -> int:
        """Of those with acks=all."""
        return sum(len(sent.acknowledged) for sent in self.sent.values() if not sent.loose)

    def stop(self) -> None:
        self._stopped = True

    async def end(self, limit_s: float) -> bool:
        """Whether every producer has got an answer, good or bad, for all that it sent."""
        _, pending = await asyncio.wait(self._tasks, timeout=limit_s)
        for task in self._tasks:
            if task.done() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]
        return not pending

    async def _produce(self, number: int, chance: random.Random, loose: bool) -> None:
        world = self._world
        producer = Producer(
            world.bootstrap,
            acks=1 if loose else "all",
            enable_idempotence=not loose,
            linger_ms=chance.choice((0, 5)),
            request_timeout_ms=2_000,
            delivery_timeout_ms=90_000,
            retry_backoff_ms=50,
            metadata_max_age_ms=5_000,
            max_block_ms=90_000,
            socket_connection_setup_timeout_ms=1_500,
        )
        waiting: list[asyncio.Task[None]] = []
        count = 0
        while not self._stopped:
            key = chance.choice(self._keys)
            for _ in range(chance.choice((1, 1, 3, 10))):
                count += 1
                value = b"%d-%d-%d" % (number, key[1], count)
                sent = self.sent.setdefault((number, key), Sent(loose=loose))
                try:
                    future = await producer.send(key[0], value, partition=key[1])
                except KafkaError:
                    continue  # it was not sent
                sent.values.append(value)
                waiting.append(asyncio.get_running_loop().create_task(self._settle(sent, value, future)))
            await asyncio.sleep(chance.expovariate(1 / self._pace_s))
            waiting = [task for task in waiting if not task.done()]
            if len(waiting) > 60:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if waiting:
            await asyncio.wait(waiting)
        try:
            await producer.close()
        except KafkaError:
            pass  # what failed is known already

    async def _settle(self, sent: Sent, value: bytes, future: DeliveryFuture) -> None:
        loop = self._world.loop
        try:
            delivery = await future
        except KafkaError as error:
            sent.failed[value] = error.code
            loop.trace.add(loop.now_s, "failed", f"{value.decode()} {error.code.name}")
        else:
            sent.acknowledged[value] = delivery.offset
            loop.trace.add(loop.now_s, "ack", f"{value.decode()} {delivery.offset}")
