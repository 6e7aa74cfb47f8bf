"""Records that ask to be delivered later."""

from __future__ import annotations

import asyncio

from devtools.history.operation import Outcome
from devtools.sim.broken import Broken
from devtools.sim.job import LARGEST_JUMP_S, TIMES, Job, text
from devtools.sim.patches import EPOCH_S
from ixion.clients.aio import Consumer, Producer
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import KafkaError

LONGEST_S = 12.0


class Delayed(Job):
    """Never early, exactly once."""

    keys = []  # noqa: RUF012
    delivered_to = "d"
    _process = 1

    async def prepare(self) -> None:
        await self.world.create_topic("d", 1, config={"delivery.delay.mode": "record"})

    def begin(self) -> None:
        self._due_ms: dict[str, int] = {}
        self._acknowledged: set[str] = set()
        self._seen: dict[str, set[int]] = {}
        self.spawn(self._send())
        self.spawn(self._follow())

    @property
    def _now_ms(self) -> int:
        return int((EPOCH_S + self.world.loop.now_s) * 1_000)

    async def _send(self) -> None:
        producer = Producer(self.world.bootstrap, linger_ms=0, delivery_timeout_ms=90_000, max_block_ms=90_000, **TIMES)
        settling = []
        while not self.stopped:
            value = f"d{len(self._due_ms)}"
            due_ms = self._now_ms + int(self.chance.choice((0.0, 1.0, LONGEST_S)) * 1_000 * self.chance.random())
            self._due_ms[value] = due_ms
            headers = [("x-deliver-at", str(due_ms).encode())]
            try:
                future = await producer.send("d", value.encode(), partition=0, headers=headers)
                settling.append(asyncio.ensure_future(self._settle(value, future)))
            except KafkaError:
                pass
            await asyncio.sleep(self.chance.expovariate(1 / 0.25))
        if settling:
            await asyncio.wait(settling)
        await producer.close()

    async def _settle(self, value: str, future: object) -> None:
        try:
            await future  # type: ignore[misc]
            self._acknowledged.add(value)
        except KafkaError:
            pass

    async def _follow(self) -> None:
        consumer = Consumer(self.world.bootstrap, auto_offset_reset="earliest", **TIMES)
        await consumer.assign([Place(self.delivered_to, 0)])
        while not self.stopped or not self._acknowledged <= self._seen.keys():
            try:
                records = await consumer.poll(0.5)
            except KafkaError:
                await asyncio.sleep(0.1)
                continue
            for record in records:
                value = text(record.value)
                self._seen.setdefault(value, set()).add(record.offset)
                if not self.clocks_jump and self._now_ms < self._due_ms[value]:
                    early_ms = self._due_ms[value] - self._now_ms
                    raise Broken("NeverEarly", f"{value} was delivered {early_ms} ms before its time")
        await consumer.close()

    async def check(self, limit_s: float) -> None:
        self.stop()
        late_s = LARGEST_JUMP_S if self.clocks_jump else 0  # a due time of a clock that was ahead
        if not await self.end(limit_s + LONGEST_S + late_s):
            missing = sorted(self._acknowledged - self._seen.keys())
            raise Broken("DeliveredOnce", f"{len(missing)} delayed records did not come, such as {missing[:3]}")
        await self.read_all(self.delivered_to, 1, self._process, "read_uncommitted", limit_s)
        found: dict[str, set[int]] = {}
        for operation in self.history:
            assert operation.outcome is Outcome.OK
            for poll in operation.polls:
                for offset, value in poll.records:
                    found.setdefault(value, set()).add(offset)
        for value, offsets in {**self._seen, **found}.items():
            if len(offsets | self._seen.get(value, set())) > 1:
                raise Broken("DeliveredOnce", f"{value} is at {sorted(offsets | self._seen[value])}")
        missing = sorted(self._acknowledged - found.keys())
        if missing:
            raise Broken("DeliveredOnce", f"acknowledged and not there: {missing[:3]}")


class Scheduled(Delayed):
    """The same by way of a schedule topic (delivery.delay.target): a broker delivers them to another topic."""

    delivered_to = "o"

    async def prepare(self) -> None:
        await self.world.create_topic("o", 1)
        config = {"delivery.delay.mode": "record", "delivery.delay.target": "o"}
        await self.world.create_topic("d", 1, config=config)
