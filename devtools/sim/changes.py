"""Topics that are created, grown, set and deleted while brokers fail, and replicas that move."""

from __future__ import annotations

import asyncio
from typing import Any

from devtools.sim.broken import Broken
from devtools.sim.job import TIMES, Job
from ixion.broker.metadata import paths
from ixion.broker.metadata.topic_node import decode_topic
from ixion.clients.admin.configs import Resource
from ixion.clients.admin.topics import NewTopic
from ixion.clients.aio import Admin
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import KafkaError
from ixion.language.model.resource_type import ResourceType

SETTING = "max.message.bytes"


class Changes(Job):
    """Converged: the tree, the images and the logs of all brokers agree, and a change that was confirmed is there."""

    def begin(self) -> None:
        self._known: dict[str, tuple[int, str]] = {}  # partitions and a setting, as confirmed
        self._doubtful: set[str] = set()  # a change of them failed: it may have been made
        self._gone: set[str] = set()
        self.spawn(self._change())

    async def _change(self) -> None:
        admin = Admin(self.world.bootstrap, default_api_timeout_ms=8_000, **TIMES)
        number = 0
        while not self.stopped:
            names = sorted(self._known)
            act = self.chance.choice(("create", "create", "delete", "grow", "set"))
            if act == "create" or not names:
                act, number = "create", number + 1
                name = f"a{number}"
            else:
                name = self.chance.choice(names)
            try:
                await self._one(admin, act, name)
            except KafkaError as error:
                self.world.note("note", f"{act} {name}: {error.code.name}")
                self._known.pop(name, None)
                self._doubtful.add(name)
            await asyncio.sleep(self.chance.expovariate(1 / 0.5))
        await admin.close()

    async def _one(self, admin: Admin, act: str, name: str) -> None:
        partitions, setting = self._known.get(name, (0, ""))
        match act:
            case "create":
                partitions = self.chance.choice((1, 3))
                (await admin.create_topics([NewTopic(name, partitions, 3)])).check()
                self._known[name] = (partitions, "")
            case "delete":
                (await admin.delete_topics([name])).check()
                del self._known[name]
                self._gone.add(name)
            case "grow":
                (await admin.create_partitions({name: partitions + 1})).check()
                self._known[name] = (partitions + 1, setting)
            case _:
                setting = str(self.chance.randrange(100_000, 200_000))
                resource = Resource(ResourceType.TOPIC, name)
                (await admin.alter_configs({resource: {SETTING: setting}})).check()
                self._known[name] = (partitions, setting)

    async def check(self, limit_s: float) -> None:
        self.stop()
        if not await self.end(limit_s):
            raise Broken("Healthy", "an admin call got no answer")
        names = sorted({*self._known, *self._doubtful, *self._gone})
        if not await self.world.until(lambda: not self._wrong(names), limit_s):
            raise Broken("Converged", "; ".join(self._wrong(names)[:3]))

    def _wrong(self, names: list[str]) -> list[str]:
        world = self.world
        present = set(world.tree.own.children(paths.TOPICS))
        wrong = [f"{name} was created and is gone" for name in self._known if name not in present]
        wrong += [f"{name} was deleted and is there" for name in self._gone if name in present]
        wrong += [f"{name} is still to be deleted" for name in world.tree.own.children(paths.DELETE_TOPICS)]
        for name in names:
            for number, broker in world.running():
                wrong += self._wrong_on(number, broker.parts, name, name in present)
        return wrong

    def _wrong_on(self, number: int, parts: Any, name: str, present: bool) -> list[str]:
        world = self.world
        image = parts.image.topics.get(name)
        if not present:
            logs = [p for p in range(8) if parts.logs.get(name, p) is not None]
            return [f"b{number} knows {name}, logs {logs}"] if image is not None or logs else []
        node = decode_topic(name, world.tree.own.get(paths.topic(name)).data)
        if image is None or len(image.partitions) != len(node.partitions):
            return [f"b{number} has another image of {name}"]
        wrong = []
        confirmed = self._known.get(name)
        if confirmed is not None and confirmed[0] != len(node.partitions):
            wrong.append(f"{name} has {len(node.partitions)} partitions, not {confirmed[0]}")
        for partition in node.partitions:
            log = parts.logs.get(name, partition)
            state = world.state((name, partition))
            if log is None or state is None or state.leader < 0 or set(state.isr) != set(world.slots):
                wrong.append(f"b{number}: {name}-{partition} {state}, log {log is not None}")
            elif confirmed is not None and confirmed[1] and str(log.config.max_message_bytes) != confirmed[1]:
                wrong.append(f"b{number}: {name}-{partition} has {SETTING} {log.config.max_message_bytes}")
        return wrong


class Moves(Job):
    """A partition with two replicas moves between three brokers, while the plain producers write to it."""

    keys = [("m", 0)]  # noqa: RUF012

    async def prepare(self) -> None:
        await self.world.create_topic("m", 1, replication=2)

    def begin(self) -> None:
        self.spawn(self._move())

    async def _move(self) -> None:
        admin = Admin(self.world.bootstrap, default_api_timeout_ms=5_000, **TIMES)
        place = Place("m", 0)
        while not self.stopped:
            try:
                if self.chance.random() < 0.25:
                    await admin.elect_leaders([place])
                elif self.chance.random() < 0.2:
                    await admin.alter_partition_reassignments({place: None})
                else:
                    brokers = self.chance.sample(sorted(self.world.slots), 2)
                    await admin.alter_partition_reassignments({place: brokers})
            except KafkaError:
                pass
            await asyncio.sleep(self.chance.expovariate(1 / 1.0))
        await admin.close()

    async def check(self, limit_s: float) -> None:
        self.stop()
        if not await self.end(limit_s):
            raise Broken("Healthy", "an admin call got no answer")
        if not await self.world.until(lambda: not self._wrong(), limit_s):
            raise Broken("MoveEnds", f"{limit_s:g} s after the last fault: {self._wrong()}")

    def _wrong(self) -> str:
        world = self.world
        replicas = world.replicas(("m", 0))
        if replicas.adding or replicas.removing:
            return f"m-0 is still moving: {replicas}"
        logs = [number for number, broker in world.running() if broker.parts.logs.get("m", 0) is not None]
        return (
            ""
            if set(logs) == set(replicas.all) and not replicas.leftover
            else f"m-0 has replicas {replicas.all}, leftover {replicas.leftover}, logs are on {logs}"
        )
