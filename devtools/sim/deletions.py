"""Groups that are made, committed for and deleted, with names of the greatest length, while brokers fail."""

from __future__ import annotations

import asyncio
from typing import Final

from devtools.sim.broken import Broken
from devtools.sim.cleaning import Swept
from devtools.sim.job import TIMES, Job
from ixion.clients.aio import Admin
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import KafkaError

LONG_TOPIC: Final = "n" * 249
LONGEST_GROUP: Final = 4_000
PLACES: Final = (Place("t", 0), Place(LONG_TOPIC, 0))
OFFSETS: Final = ("__consumer_offsets", 0)
QUICK_S: Final = 1.0  # an answer that took longer may be that to a second request, and the first may still arrive


class Deletions(Job):
    """OffsetsKept: a group has the offsets that were committed last, and a deleted group has none, although its
    coordinator moves and its topic is compacted.

    A commit without a member is not fenced: one whose answer was late or lost may be carried out after the next. So
    nothing is promised about its group any more, and another group takes its place.
    """

    keys = [(LONG_TOPIC, 0)]  # noqa: RUF012 - the plain producers write to it
    settings = Swept.settings

    async def prepare(self) -> None:
        await self.world.create_topic(LONG_TOPIC, 1, config={"compression.type": "zstd"})

    def begin(self) -> None:
        self._committed: dict[str, int] = {}  # by group; -1: none, or deleted
        self._made = 0
        for _ in range(2):
            self.spawn(self._change())

    async def _change(self) -> None:
        admin = Admin(self.world.bootstrap, default_api_timeout_ms=8_000, **TIMES)
        mine: list[str] = []
        offset = 0
        while not self.stopped:
            if len(mine) < 3:
                self._made += 1
                name = f"g{self._made}-"
                mine.append(name if self._made % 2 else name.ljust(LONGEST_GROUP, "g"))
            name, offset = self.chance.choice(mine), offset + 1
            deletes = self.chance.random() < 0.3 and self._committed.get(name, -1) >= 0
            self._committed.pop(name, None)
            begun_s = self.world.loop.now_s
            try:
                if deletes:
                    (await admin.delete_groups([name])).check()
                else:
                    (await admin.alter_group_offsets(name, dict.fromkeys(PLACES, offset))).check()
            except KafkaError as error:
                self.world.note("note", f"{name[:8]} {'deleted' if deletes else offset}: {error.code.name}")
                mine.remove(name)
            else:
                if self.world.loop.now_s - begun_s < QUICK_S:
                    self._committed[name] = -1 if deletes else offset
                else:
                    mine.remove(name)
            await asyncio.sleep(self.chance.expovariate(1 / 0.25))
        await admin.close()

    async def check(self, limit_s: float) -> None:
        self.stop()
        if not await self.end(limit_s):
            raise Broken("Healthy", "an admin call got no answer")
        await self._move_coordinator(limit_s)
        found: dict[str, dict[Place, int]] = {}
        task = self.spawn(self._list(found))
        await asyncio.wait([task], timeout=limit_s)
        if not task.done():
            raise Broken("Healthy", "the offsets of groups could not be read")
        for name, offset in self._committed.items():
            expected = dict.fromkeys(PLACES, offset) if offset >= 0 else {}
            if found[name] != expected:
                got = {place.topic[:4]: each for place, each in found[name].items()}
                raise Broken("OffsetsKept", f"{name[:8]} has {got}, not {offset}")

    async def _move_coordinator(self, limit_s: float) -> None:
        """The next one knows what is in the log, and no more."""
        world, before, end_s = self.world, self.world.leader(OFFSETS), self.world.loop.now_s + limit_s
        while before >= 0 and world.leader(OFFSETS) in (-1, before):
            if world.loop.now_s > end_s:
                raise Broken("Healthy", f"{OFFSETS} cannot be led by another broker than {before}")
            await world.make_leader(OFFSETS, self.chance.choice([each for each in world.slots if each != before]))
            await asyncio.sleep(0.5)

    async def _list(self, found: dict[str, dict[Place, int]]) -> None:
        admin = Admin(self.world.bootstrap, default_api_timeout_ms=60_000, **TIMES)
        for name in self._committed:
            while name not in found:
                try:
                    listed = (await admin.list_group_offsets([name])).check()
                    found[name] = {place: each.offset for place, each in listed[name].items()}
                except KafkaError:
                    await asyncio.sleep(0.5)
        await admin.close()
