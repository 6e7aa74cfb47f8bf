"""Exactly-once copies by programs that use our clients with both faces: abort, go back, die in the middle.

The topic that they write to takes small batches only, so that batches are refused as too large and split.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from devtools.sim.clients import CLOSE_S, PROTOCOLS, Programs
from devtools.sim.faces import Face
from devtools.sim.job import TIMES
from devtools.sim.transactions import PARTITIONS, Copies
from ixion.clients import KafkaError
from ixion.clients import TopicPartition as Place

LARGEST: Final = 250  # bytes of a batch: two or three records


class ClientCopies(Programs, Copies):
    async def prepare(self) -> None:
        await self.world.create_topic("x", PARTITIONS, config={"max.message.bytes": str(LARGEST)})

    def begin(self) -> None:
        Programs.begin(self)
        self._protocol = self.chance.choice(PROTOCOLS)
        self._copied = set()
        self._calm = False  # no program dies or aborts any more
        for slot in range(2):
            self.spawn(self._live(slot, random.Random(self.chance.random())))

    async def _live(self, slot: int, chance: random.Random) -> None:
        while not self.stopped:
            life = self.start(chance)
            life.begin(self._copier(life, slot, chance))
            await self.over(life)
            await asyncio.sleep(0.2)

    async def _copier(self, life: Face, slot: int, chance: random.Random) -> None:
        consumer = life.consumer(
            group="copies",
            topics=["t"],
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=chance.choice((5, 20)),
            default_api_timeout_ms=5_000,
            **self._protocol,
            **TIMES,
        )
        producer = life.producer(
            transactional_id=f"copy{slot}",
            transaction_timeout_ms=10_000,
            delivery_timeout_ms=10_000,
            max_block_ms=10_000,
            linger_ms=chance.choice((0, 5)),
            **TIMES,
        )
        try:
            await life.wait(producer.init_transactions())
            while not self.stopped:
                records = await life.wait(consumer.poll(0.5))
                if records:
                    await self._copy_batch(life, consumer, producer, records, chance)
        except KafkaError:
            await life.sleep(0.2)
        for client, limit_s in ((producer, 2.0), (consumer, CLOSE_S)):
            try:
                await life.wait(client.close(limit_s))
            except KafkaError:
                pass

    async def _copy_batch(
        self, life: Face, consumer: Any, producer: Any, records: list[Any], chance: random.Random
    ) -> None:
        fate = 1.0 if self._calm else chance.random()
        await life.wait(producer.begin_transaction())
        firsts: dict[Place, int] = {}
        ends: dict[Place, int] = {}
        for record in records:
            place = Place(record.topic, record.partition)
            await life.wait(producer.send("x", b"copy " + (record.value or b""), partition=record.partition))
            firsts.setdefault(place, record.offset)
            ends[place] = record.offset + 1
            if chance.random() < 0.02 and fate < 0.3:
                await life.die()
        if fate < 0.3:  # at once, or while the batches fly
            await life.sleep(chance.choice((0.0, 0.001, 0.01, 0.5)))
            await life.wait(producer.abort_transaction())
            for place in set(firsts) & set(consumer.assignment()):
                await life.wait(consumer.seek(place, firsts[place]))
            return
        await life.wait(producer.send_offsets(ends, consumer.group_metadata()))
        await life.wait(producer.commit_transaction())
        self._copied.update((record.partition, record.offset) for record in records)

    async def check(self, limit_s: float) -> None:
        self.judge_broken()
        self._calm = True  # so that they catch up
        await super().check(limit_s)
        self.judge_broken()
