"""Loads beside the plain producers: a seed draws one, or none. `JOBS` has them by name (`jobs`)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any, Final

from devtools.history.checker import check
from devtools.history.operation import Operation, Outcome, Poll, Send
from devtools.sim.broken import Broken
from devtools.sim.loop import Node
from devtools.sim.workload import Load
from devtools.sim.world import World
from ixion.clients.aio import Consumer
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import KafkaError
from ixion.language.model.topic_partition import TopicPartition

# Of clients that notice a fault soon.
TIMES: Final[dict[str, Any]] = {
    "request_timeout_ms": 2_000,
    "retry_backoff_ms": 50,
    "metadata_max_age_ms": 5_000,
    "socket_connection_setup_timeout_ms": 1_500,
}

LARGEST_JUMP_S: Final = 600.0  # of a wall clock; a time to come of one broker is so much later for another


class Job:
    def __init__(self, world: World, load: Load, chance: random.Random) -> None:
        self.world = world
        self.load = load
        self.chance = chance
        self.stopped = False
        self.clocks_jump = False  # by a fault of this run
        self.history: list[Operation] = []
        self.broken: Broken | None = None  # what a look at the brokers has found, to be raised at the end
        self._tasks: list[asyncio.Task[Any]] = []
        self._nodes = 0

    # For those that make one.

    keys: list[TopicPartition] = []  # noqa: RUF012 - partitions that the plain producers write to as well
    directories = 1  # of each broker
    settings: dict[str, str] = {}  # noqa: RUF012 - of the brokers, beside the usual ones
    features: dict[str, int] = {}  # noqa: RUF012 - of the cluster, from its start

    async def prepare(self) -> None:
        """Before any fault."""

    def begin(self) -> None:
        """Start the clients."""

    async def check(self, limit_s: float) -> None:
        """After the faults, when everything is mended: Broken if a promise was."""

    # For the run.

    def stop(self) -> None:
        self.stopped = True

    async def end(self, limit_s: float) -> bool:
        if not self._tasks:
            return True
        _, pending = await asyncio.wait(self._tasks, timeout=limit_s)
        for task in self._tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]
        return not pending

    # What they share.

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A client: a process of its own."""
        self._nodes += 1
        node = Node(f"j{self._nodes}", f"10.0.2.{self._nodes}")
        task = self.world.loop.spawn(node, work)
        self._tasks.append(task)
        return task

    def told(self, process: int, outcome: Outcome, kind: str, parts: list[Send | Poll]) -> None:
        self.history.append(Operation(process=process, outcome=outcome, kind=kind, parts=tuple(parts)))

    async def read_all(self, topic: str, partitions: int, process: int, isolation: str, limit_s: float) -> None:
        """Read a topic from its start to its end, into the history."""
        for records in await self.collect(topic, partitions, isolation, limit_s):
            self.told(process, Outcome.OK, "poll", polls(records))

    async def collect(
        self, topic: str, partitions: int, isolation: str, limit_s: float, **options: Any
    ) -> list[list[Any]]:
        """All records of a topic, from its start to its end, poll by poll."""

        async def reading() -> list[list[Any]]:
            found_records: list[list[Any]] = []
            places = [Place(topic, number) for number in range(partitions)]
            consumer = Consumer(
                self.world.bootstrap, isolation_level=isolation, auto_offset_reset="earliest", **{**TIMES, **options}
            )
            await consumer.assign(places)
            ends = await consumer.end_offsets(places)
            while True:
                found_records.append(await consumer.poll(0.2))
                found = [await consumer.position(place) for place in places]
                if all(at >= ends[place] for at, place in zip(found, places, strict=True)):
                    break
            await consumer.close()
            return found_records

        end_s = self.world.loop.now_s + limit_s
        while self.world.loop.now_s < end_s:
            task = self.spawn(reading())
            self._tasks.remove(task)
            await asyncio.wait([task], timeout=max(end_s - self.world.loop.now_s, 0))
            if task.done() and task.exception() is None:
                return list(task.result())
            if task.done() and not isinstance(task.exception(), KafkaError):
                raise task.exception()  # type: ignore[misc]
            task.cancel()
            await asyncio.sleep(0.5)
        raise Broken("Healthy", f"{topic} could not be read to its end within {limit_s:g} s ({isolation})")

    def judge(self, operations: list[Operation]) -> None:
        loose = {value.decode() for sent in self.load.sent.values() if sent.loose for value in sent.values}
        found = check(operations, loose)
        if found:
            raise Broken(f"History {found[0].kind}", "; ".join(f"{each.kind}: {each.detail}" for each in found[:3]))


def polls(records: Any) -> list[Send | Poll]:
    """Records of one poll, as the history has them."""
    found: dict[str, list[tuple[int, str]]] = {}
    for record in records:
        found.setdefault(f"{record.topic}-{record.partition}", []).append((record.offset, text(record.value)))
    return [Poll(key=key, records=tuple(each)) for key, each in found.items()]


def text(value: bytes | None) -> str:
    return bytes(value or b"").decode()
