"""Consumers that read from the nearest replica, of a topic whose records are shown after a fixed delay."""

from __future__ import annotations

import asyncio
from typing import Final

from devtools.sim.broken import Broken
from devtools.sim.job import LARGEST_JUMP_S, TIMES, Job, text
from devtools.sim.patches import EPOCH_S
from devtools.sim.world import NUMBER
from ixion.clients.aio import Consumer
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import KafkaError

DELAY_MS: Final = 1_200
PLACE: Final = Place("f", 0)


class Nearest(Job):
    """NeverEarly: no replica shows a record before its time. ReadOnce: each reader gets what was acknowledged, once, in
    order and at its offset, from whichever replica it reads."""

    keys = [("f", 0)]  # noqa: RUF012 - the plain producers write to it
    settings = {  # noqa: RUF012
        "broker.rack": f"r{NUMBER}",
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    }

    async def prepare(self) -> None:
        config = {"delivery.delay.mode": "fixed", "delivery.delay.ms": str(DELAY_MS)}
        await self.world.create_topic("f", 1, config=config)

    def begin(self) -> None:
        self._ended = False
        self._seen: dict[int, dict[int, str]] = {}  # by reader: values by offset
        for number in self.world.slots:
            self._seen[number] = {}
            self.spawn(self._follow(number))

    async def _follow(self, number: int) -> None:
        consumer = Consumer(self.world.bootstrap, auto_offset_reset="earliest", client_rack=f"r{number}", **TIMES)
        await consumer.assign([PLACE])
        seen, last = self._seen[number], -1
        while not self._ended:
            try:
                records = await consumer.poll(0.5)
            except KafkaError:
                await asyncio.sleep(0.1)
                continue
            now_ms = int((EPOCH_S + self.world.loop.now_s) * 1_000)
            for record in records:
                value, offset = text(record.value), int(record.offset)
                if offset <= last:
                    raise Broken("ReadOnce", f"reader {number} got {value} at {offset} after {last}")
                last, seen[offset] = offset, value
                early_ms = int(record.timestamp) + DELAY_MS - now_ms
                if early_ms > 0 and not self.clocks_jump:
                    raise Broken("NeverEarly", f"reader {number} got {value} at {offset} {early_ms} ms before its time")
        await consumer.close()

    async def check(self, limit_s: float) -> None:
        self.stop()
        wanted = {
            offset: value.decode()
            for (_, key), sent in self.load.sent.items()
            if key == self.keys[0] and not sent.loose
            for value, offset in sent.acknowledged.items()
        }
        # A record that a leader took while its clock was ahead has a time to come, and a follower hides it until then.
        shown_s = limit_s + (LARGEST_JUMP_S if self.clocks_jump else 0)
        await self.world.until(lambda: all(wanted.keys() <= seen.keys() for seen in self._seen.values()), shown_s)
        self._ended = True
        if not await self.end(limit_s):
            raise Broken("Healthy", "a reader did not end")
        everything: dict[int, str] = {}
        for number, seen in self._seen.items():
            for offset, value in wanted.items():
                if seen.get(offset) != value:
                    raise Broken("ReadOnce", f"reader {number} got {seen.get(offset)} at {offset}, not {value}")
            for offset, value in seen.items():
                if everything.setdefault(offset, value) != value:
                    raise Broken("ReadOnce", f"readers got {everything[offset]} and {value} at {offset}")
