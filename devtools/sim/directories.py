"""Partitions that move between the log directories of their brokers while settings change and records wait."""

from __future__ import annotations

import asyncio
import os
from typing import Final

from devtools.sim.broken import Broken
from devtools.sim.delayed import Delayed
from devtools.sim.job import TIMES
from devtools.sim.world import DIRECTORY_NAMES
from ixion.broker.startup.broker import Broker
from ixion.clients.admin.configs import Resource
from ixion.clients.admin.replicas import BrokerReplica
from ixion.clients.aio import Admin
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import KafkaError
from ixion.language.model.resource_type import ResourceType

SETTING: Final = "segment.bytes"
SMALLEST: Final = 1 << 20
TOPICS: Final = ("d", "p")


class Directories(Delayed):
    """Delayed records come once, as ever; each log has the settings that were confirmed last; a partition and its
    delayed records are in one directory; no copy is left when the moves have ended."""

    keys = [("p", 0)]  # noqa: RUF012 - the plain producers write to it
    directories = len(DIRECTORY_NAMES)

    async def prepare(self) -> None:
        await super().prepare()
        await self.world.create_topic("p", 1)

    def begin(self) -> None:
        super().begin()
        self._confirmed: dict[str, str] = {}  # by topic; not there: a change failed, and may have been made
        self._moves = 0
        self.spawn(self._change())

    async def _change(self) -> None:
        admin = Admin(self.world.bootstrap, default_api_timeout_ms=8_000, **TIMES)
        while not self.stopped:
            topic = self.chance.choice(TOPICS)
            # Both at once, in either order: a setting may change while a move runs.
            acts = self.chance.sample((self._move, self._set), self.chance.choice((1, 2, 2)))
            await asyncio.gather(*[act(admin, topic) for act in acts])
            await asyncio.sleep(self.chance.expovariate(1 / 0.7))
        await admin.close()

    async def _move(self, admin: Admin, topic: str) -> None:
        number = self.chance.choice(sorted(self.world.slots))
        folder = self.world.slots[number].folder
        where = os.path.join(folder, self.chance.choice(DIRECTORY_NAMES))
        try:
            await admin.alter_replica_log_dirs({BrokerReplica(Place(topic, 0), number): where})
            self._moves += 1
        except KafkaError as error:
            self.world.note("note", f"move {topic}: {error.code.name}")

    async def _set(self, admin: Admin, topic: str) -> None:
        value = str(SMALLEST + self.chance.randrange(1, 100_000))
        self._confirmed.pop(topic, None)
        try:
            (await admin.alter_configs({Resource(ResourceType.TOPIC, topic): {SETTING: value}})).check()
            self._confirmed[topic] = value
        except KafkaError as error:
            self.world.note("note", f"set {topic}: {error.code.name}")

    async def check(self, limit_s: float) -> None:
        await super().check(limit_s)
        if not await self.world.until(lambda: not self._wrong(), limit_s):
            raise Broken("OneOwner", "; ".join(self._wrong()[:3]))

    def _wrong(self) -> list[str]:
        return [f"b{number}: {each}" for number, broker in self.world.running() for each in self._wrong_on(broker)]

    def _wrong_on(self, broker: Broker) -> list[str]:
        manager = broker.parts.logs
        wrong = [f"{log.name} is still on its way" for log in manager.future_logs.values()]
        for topic in TOPICS:
            logs = manager.of(topic, 0).in_use
            if not logs:
                wrong.append(f"there is no log of {topic}-0")
            if len({log.directory.path for log in logs}) > 1:
                wrong.append(f"the delayed records of {topic}-0 are not where it is")
            expected = self._confirmed.get(topic, "")
            wrong += [
                f"{log.name} has {SETTING} {log.config.segment_bytes}, not {expected}"
                for log in logs
                if expected and str(log.config.segment_bytes) != expected
            ]
        return wrong
