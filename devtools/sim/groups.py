"""Members of a consumer group that read what the plain producers write; they come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from devtools.history.operation import Operation, Outcome, Send
from devtools.sim.broken import Broken
from devtools.sim.job import TIMES, Job, polls
from ixion.clients.aio import Consumer
from ixion.clients.consumer.listener import RebalanceListener
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import KafkaError

MEMBERS = 3


class Owners(RebalanceListener):
    def __init__(self, job: Groups, process: int) -> None:
        self._job = job
        self._process = process

    def on_assigned(self, partitions: Sequence[Place]) -> object:
        if partitions:
            self._job.told(self._process, Outcome.OK, "assign", [])
        return None


class Groups(Job):
    """At least once: what was acknowledged is read by some member, in order and without gaps."""

    def begin(self) -> None:
        self._strategy = self.chance.choice((["range"], ["cooperative-sticky"], ["roundrobin"]))
        self._processes = 0
        self.read: set[str] = set()
        for _ in range(MEMBERS):
            self.spawn(self._member())

    async def _member(self) -> None:
        """One after the other: members leave, and others join."""
        while not self.stopped:
            self._processes += 1
            process = self._processes
            consumer = Consumer(
                self.world.bootstrap,
                group="g",
                topics=["t"],
                listener=Owners(self, process),
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=6_000,
                heartbeat_interval_ms=1_000,
                partition_assignment_strategy=self._strategy,
                default_api_timeout_ms=5_000,
                **TIMES,
            )
            lives_s = self.world.loop.now_s + self.chance.choice((3.0, 8.0, 60.0)) * self.chance.uniform(0.5, 1.5)
            while self.world.loop.now_s < lives_s and not self.stopped:
                try:
                    records = await consumer.poll(0.5)
                    if records:
                        self.told(process, Outcome.OK, "poll", polls(records))
                        self.read.update(record.value.decode() for record in records)
                    if records and self.chance.random() < 0.6:
                        await consumer.commit()
                except KafkaError:
                    await asyncio.sleep(0.1)  # the group has gone on without this member, or nobody answers
            try:
                await consumer.close()
            except KafkaError:
                pass

    async def check(self, limit_s: float) -> None:
        wanted = {value.decode() for sent in self.load.sent.values() if not sent.loose for value in sent.acknowledged}
        if not await self.world.until(lambda: wanted <= self.read, limit_s):
            missing = sorted(wanted - self.read)
            raise Broken("EverythingRead", f"{len(missing)} records were read by no member, such as {missing[:3]}")
        self.stop()
        if not await self.end(limit_s):
            raise Broken("Healthy", "a member of the group did not end")
        self.judge([*self._sends(), *self.history])

    def _sends(self) -> list[Operation]:
        found = []
        for (number, key), sent in self.load.sent.items():
            for value in sent.values:
                if value in sent.acknowledged:
                    send = Send(key=f"{key[0]}-{key[1]}", value=value.decode(), offset=sent.acknowledged[value])
                    outcome = Outcome.INFO if sent.loose else Outcome.OK
                    found.append(Operation(process=-number - 1, outcome=outcome, kind="send", parts=(send,)))
        return found
