"""Programs that use our consumers in a group, with both faces; judged by what they have *processed*.

They read what the plain producers write. A program processes the records of a poll one by one, and may die after any
of them. The seed draws the group protocol (classic eager, classic cooperative, KIP-848), static members, automatic or
manual commits, pauses and seeks.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from devtools.history.operation import Outcome
from devtools.sim import threads
from devtools.sim.broken import Broken
from devtools.sim.faces import FACES, Face
from devtools.sim.groups import Groups
from devtools.sim.job import TIMES, Job, polls
from devtools.sim.loop import NODE, Node, context_of
from ixion.broker.metadata.cluster_node import OURS_ALONE
from ixion.clients import ConsumerRecord, KafkaError, RebalanceListener
from ixion.clients import TopicPartition as Place

MEMBERS: Final = 3
LOOK_S: Final = 0.1
CLOSE_S: Final = 60.0  # longer than any fault: the last commit is through by then
CLASSIC: Final[dict[str, Any]] = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 1_000}
PROTOCOLS: Final[tuple[dict[str, Any], ...]] = (
    {"partition_assignment_strategy": ["range"], **CLASSIC},
    {"partition_assignment_strategy": ["cooperative-sticky"], **CLASSIC},
    {"group_protocol": "consumer"},
)


class Programs(Job):
    """Starts processes of both faces, and watches that none of them sleeps beside something to do."""

    features = OURS_ALONE
    settings: dict[str, str] = {  # noqa: RUF012 - a member that died is noticed as soon as in a classic group
        "group.consumer.session.timeout.ms": "6000",
        "group.consumer.min.session.timeout.ms": "6000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.consumer.min.heartbeat.interval.ms": "1000",
    }

    def begin(self) -> None:
        threads.install(self.world.loop)
        self._lives: list[Face] = []
        self._processes = 0
        self.broken: Broken | None = None
        context_of(None).run(self.world.loop.create_task, self._watch())

    def start(self, chance: random.Random) -> Face:
        """A new process, of either face."""
        self._processes += 1
        node = Node(f"p{self._processes}", f"10.0.3.{self._processes}")
        life = chance.choice(FACES)(self.world, node)
        self.world.note("note", f"start {node}, {type(life).__name__}")
        self._lives.append(life)
        return life

    def fault(self, invariant: str, text: str) -> None:
        self.broken = self.broken or Broken(invariant, text)

    async def over(self, life: Face) -> None:
        await life.ended
        self.world.note("note", f"{life.node} {'died' if life.node.dead else 'ended'}")
        self._lives.remove(life)
        if life.error is not None:
            raise life.error

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            for life in self._lives:
                said = life.asleep()
                if said:
                    self.fault("Asleep", said)

    def judge_broken(self) -> None:
        if self.broken is not None:
            raise self.broken


class Owner(RebalanceListener):
    """What one member has processed, and what of it the group knows."""

    def __init__(self, job: Clients, process: int) -> None:
        self._job = job
        self._process = process
        self._next: dict[Place, int] = {}  # after the last processed record, of partitions that are assigned
        self.warned = False  # that the last commit has failed

    def hear(self, kind: str, partitions: Sequence[Place]) -> object:
        self._job.world.note("note", f"p{self._process} {kind} {' '.join(map(str, partitions))}")
        return super().hear(kind, partitions)

    def on_assigned(self, partitions: Sequence[Place]) -> object:  # noqa: ARG002 - any
        self._job.told(self._process, Outcome.OK, "assign", [])
        return None

    def on_revoked(self, partitions: Sequence[Place]) -> object:
        """With automatic commits everything processed is committed by now, or a warning was logged."""
        for place in partitions:
            offset = self._next.pop(place, 0)
            if self._job.automatic and not self.warned:
                self._job.seal(place, offset, f"the revocation from process {self._process}")
        self.warned = False
        return None

    def on_lost(self, partitions: Sequence[Place]) -> object:
        for place in partitions:
            self._next.pop(place, None)
        return None

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        return records

    def on_commit(self, offsets: Mapping[Place, int]) -> None:
        for place, offset in offsets.items():
            self._job.seal(place, offset, f"a commit of process {self._process}")

    def processed(self, record: ConsumerRecord) -> None:
        self._next[Place(record.topic, record.partition)] = record.offset + 1
        self._job.processed(record, self._process)


class Warnings(logging.Handler):
    """Notes that a last commit has failed: then records come again, as promised."""

    def __init__(self, job: Clients) -> None:
        super().__init__(logging.WARNING)
        self._job = job

    def emit(self, record: logging.LogRecord) -> None:
        owner = self._job.owners.get(str(NODE.get()))
        if owner is not None and "last automatic commit" in record.getMessage():
            owner.warned = True


class Clients(Programs, Groups):
    """At least once: what was acknowledged is processed by some member. What was committed, or handed over by a
    revocation with automatic commits, is processed once."""

    def begin(self) -> None:
        super().begin()
        chance = self.chance
        self._protocol = chance.choice(PROTOCOLS)
        self._static = chance.random() < 0.3
        self._pauses = chance.random() < 0.3
        self._seeks = chance.random() < 0.2
        self.automatic = chance.random() < 0.6
        self.read = set()
        self._calm = False  # nobody dies or leaves any more
        self.owners: dict[str, Owner] = {}
        self._sealed: dict[Place, tuple[int, str]] = {}
        words = [word for word in ("static", "pauses", "seeks") if getattr(self, f"_{word}", False)]
        how = self._protocol.get("group_protocol") or self._protocol["partition_assignment_strategy"][0]
        self.world.note("note", f"group: {how}, {'automatic' if self.automatic else 'manual'} commits {words}")
        logging.getLogger("ixion.clients").addHandler(Warnings(self))
        for slot in range(MEMBERS):
            self.spawn(self._live(slot, random.Random(chance.random())))

    def processed(self, record: ConsumerRecord, process: int) -> None:
        place = Place(record.topic, record.partition)
        offset, why = self._sealed.get(place, (0, ""))
        if record.offset < offset and not self._seeks:
            self.fault("NothingTwice", f"process {process} got {place} {record.offset} after {why} at {offset}")
        self.read.add(record.value.decode())

    def seal(self, place: Place, offset: int, why: str) -> None:
        """Nothing before `offset` may be processed any more."""
        if offset > self._sealed.get(place, (0, ""))[0]:
            self._sealed[place] = (offset, why)

    async def _live(self, slot: int, chance: random.Random) -> None:
        """One process after the other."""
        while not self.stopped:
            life = self.start(chance)
            process = self._processes
            self.owners[str(life.node)] = owner = Owner(self, process)
            life.begin(self._program(life, owner, process, slot, chance))
            await self.over(life)
            await asyncio.sleep(chance.choice((0.0, 1.0)))

    async def _program(self, life: Face, owner: Owner, process: int, slot: int, chance: random.Random) -> None:
        loop = self.world.loop
        consumer = life.consumer(
            group="g",
            topics=["t"],
            listener=owner,
            interceptors=[owner],
            group_instance_id=f"s{slot}" if self._static else None,
            auto_offset_reset="earliest",
            enable_auto_commit=self.automatic,
            auto_commit_interval_ms=chance.choice((100, 400)),
            max_poll_records=chance.choice((3, 20, 500)),
            default_api_timeout_ms=5_000,
            **self._protocol,
            **TIMES,
        )
        ends_s = loop.now_s + chance.choice((3.0, 8.0, 60.0)) * chance.uniform(0.5, 1.5)
        dies = chance.random() < 0.5
        while not self.stopped and (dies or self._calm or loop.now_s < ends_s):
            dies = dies and not self._calm
            try:
                records = await life.wait(consumer.poll(chance.choice((0.05, 0.5, 2.0))))
                limit = chance.randrange(len(records)) if records and dies and loop.now_s >= ends_s else len(records)
                await self._process(life, owner, process, records[:limit], chance)
                if limit < len(records):
                    await life.die()
                if records and not self.automatic and chance.random() < 0.6:
                    await life.wait(consumer.commit() if chance.random() < 0.5 else consumer.commit_async())
                await self._play(life, consumer, process, chance)
            except KafkaError:
                await life.sleep(0.1)  # the group has gone on without this member, or nobody answers
        try:
            await life.wait(consumer.close(CLOSE_S))
        except KafkaError:
            pass

    async def _process(self, life: Face, owner: Owner, process: int, records: list[Any], chance: random.Random) -> None:
        if not records:
            return
        pause_s = chance.choice((0.0, 0.3, 0.6)) / len(records)
        if self._calm:
            pause_s = 0.0  # so that it catches up
        for record in records:
            owner.processed(record)
            if pause_s:
                await life.sleep(pause_s)
        self.told(process, Outcome.OK, "poll", polls(records))

    async def _play(self, life: Face, consumer: Any, process: int, chance: random.Random) -> None:
        """Pause, resume and seek."""
        held = consumer.assignment() if self._pauses or self._seeks else []
        if not held:
            return
        place = chance.choice(held)
        if self._pauses and chance.random() < 0.3:
            paused = consumer.paused()
            if paused:
                consumer.resume(*paused)
            elif not self._calm:
                consumer.pause(place)
        if self._seeks and not self._calm and chance.random() < 0.1:
            at = await life.wait(consumer.position(place))
            await life.wait(consumer.seek(place, max(at - 5, 0)))
            self.told(process, Outcome.OK, "assign", [])

    async def check(self, limit_s: float) -> None:
        self.judge_broken()
        self._calm = True
        await super().check(limit_s)
        self.judge_broken()
