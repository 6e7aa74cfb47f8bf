"""Programs that take records from a queue, with both faces of our share consumer.

They take what the plain producers write, accept, release (at once or with a delay), reject, renew, hold records until
their locks end, and die with records in their hands. The seed draws how long locks last, the backoff of the group, how
members acknowledge, and whether there are dead letters: then few deliveries are allowed. At the end a member dies with
records, others are released with a delay while the leaders of their partition and of the stored state change, and the
topic of the dead letters is missing until the leader has changed.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final

from devtools.sim.broken import Broken
from devtools.sim.clients import CLOSE_S, MEMBERS, Programs
from devtools.sim.faces import Face
from devtools.sim.job import LARGEST_JUMP_S, TIMES, text
from devtools.sim.promises import Promises
from ixion.clients import KafkaError
from ixion.clients.admin.configs import Resource
from ixion.clients.aio import Admin, Producer
from ixion.clients.share.record import ShareRecord
from ixion.language.model.resource_type import ResourceType
from ixion.language.model.topic_partition import TopicPartition

GROUP: Final = "q"
PROBE: Final = "p"  # a topic and a group
LETTERS: Final = "dlq.q"
PROBE_LETTERS: Final = "dlq.p"
LOOK_S: Final = 1.0
STATE: Final[TopicPartition] = ("__share_group_state", 0)
LONG_LOCK_S: Final = 60.0
SOON_S: Final = 10.0  # far less
DELAY_S: Final = 5.0
LAST_S: Final = 2.0  # that a member lives on with records in its hands
AFTERWARDS_S: Final = 3.0
PROBES: Final = 3
NOT_KNOWN: Final = -1


class Asked:
    """When the next records of each broker were asked for, and what it knew then."""

    def __init__(self, job: Shares, life: Face) -> None:
        self._job = job
        self._life = life
        self._since: dict[int, tuple[float, dict[TopicPartition, int]]] = {}

    def now(self, consumer: Any) -> None:
        """The program is about to poll. A fetch that is under way was sent earlier."""
        sessions = consumer._machine.fetcher.sessions
        for number in self._job.world.slots:
            session = sessions.get(number)
            busy = session is not None and (session.is_fetching or any(each.fresh for each in session.acquisitions))
            if not busy or number not in self._since:
                self._since[number] = (self._job.world.loop.now_s, self._job.epochs_of(number))

    def of(self, consumer: Any, record: ShareRecord) -> tuple[float, int]:
        """Since when the record was asked for, and the leader epoch that its broker knew of then."""
        for number, session in consumer._machine.fetcher.sessions.items():
            if record.acquisition in session.acquisitions:
                since_s, epochs = self._since[number]
                return since_s, epochs.get((record.topic, record.partition), NOT_KNOWN)
        return self._job.world.loop.now_s, NOT_KNOWN  # its session has ended since


class Shares(Programs):
    """Conserved: each record is accepted, rejected, a dead letter, or there. What is finished does not come again, and
    nothing comes early."""

    settings = {  # noqa: RUF012
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.prune.interval.ms": "1000",
        "share.coordinator.snapshot.update.records.per.snapshot": "8",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.max.delivery.count.limit": "1000",
        "group.share.delivery.count.limit": "1000",
        "group.share.session.timeout.ms": "6000",
        "group.share.min.session.timeout.ms": "6000",
        "group.share.heartbeat.interval.ms": "1000",
        "group.share.min.heartbeat.interval.ms": "1000",
    }

    async def prepare(self) -> None:
        chance = self.chance
        self._backoff_s = chance.choice((0.0, 0.0, 0.4))
        lock_s = chance.choice((1.0, 3.0, LONG_LOCK_S))
        ours = {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(int(lock_s * 1_000)),
            "share.redelivery.backoff.ms": str(int(self._backoff_s * 1_000)),
            "share.redelivery.backoff.jitter": "0.5",
            "share.redelivery.backoff.max.ms": "4000",
        }
        self._letters = chance.random() < 0.4
        if self._letters:  # without them, a record that came too often would be lost
            await self.world.create_topic(LETTERS, 2, config={"errors.deadletterqueue.group.enable": "true"})
            ours["share.delivery.count.limit"] = "3"
            ours["errors.deadletterqueue.topic.name"] = LETTERS
            ours["errors.deadletterqueue.copy.record.enable"] = "true"
        probe = {
            "share.auto.offset.reset": "earliest",
            "share.record.lock.duration.ms": str(int(LONG_LOCK_S * 1_000)),
            "errors.deadletterqueue.topic.name": PROBE_LETTERS,  # which is not there before the end
            "errors.deadletterqueue.copy.record.enable": "true",
        }
        await self.world.create_topic(PROBE, 1)
        await asyncio.wait([task := self.spawn(self._configure({GROUP: ours, PROBE: probe}))])
        self._tasks.remove(task)
        task.result()

    async def _configure(self, groups: dict[str, dict[str, str]]) -> None:
        admin = Admin(self.world.bootstrap, **TIMES)
        (await admin.alter_configs({Resource(ResourceType.GROUP, name): each for name, each in groups.items()})).check()
        await admin.close()

    def begin(self) -> None:
        super().begin()
        self.promises = Promises()
        self._calm = False
        for _ in range(MEMBERS):
            self.spawn(self._live(random.Random(self.chance.random())))

    def epochs_of(self, number: int) -> dict[TopicPartition, int]:
        """The leader epochs that a broker knows of."""
        broker = self.world.slots[number].broker
        return (
            {} if broker is None else {key: each.leader_epoch for key, each in broker.parts.replicas.partitions.items()}
        )

    # Programs.

    async def _live(self, chance: random.Random) -> None:
        """One process after the other."""
        while not self.stopped:
            life = self.start(chance)
            life.begin(self._program(life, chance))
            await self.over(life)
            await asyncio.sleep(chance.choice((0.0, 1.0)))

    def _consumer(self, life: Face, topic: str, group: str, **settings: Any) -> Any:
        def answered(outcome: Any) -> None:
            if outcome.error is None:
                state = self.world.state((outcome.topic, outcome.partition))
                epoch = NOT_KNOWN if state is None else state.leader_epoch
                for offset in range(outcome.first_offset, outcome.last_offset + 1):
                    key = (outcome.topic, outcome.partition, offset)
                    self.promises.answered(str(life.node), key, outcome.kind, epoch, self.world.loop.now_s)

        return life.share_consumer(
            group=group,
            topics=[topic],
            on_acknowledgement=answered,
            default_api_timeout_ms=5_000,
            **settings,
            **TIMES,
        )

    async def _program(self, life: Face, chance: random.Random) -> None:
        loop = self.world.loop
        implicit = chance.random() < 0.3
        consumer = self._consumer(
            life,
            "t",
            GROUP,
            share_acknowledgement_mode="implicit" if implicit else "explicit",
            share_acquire_mode=chance.choice(("batch_optimized", "record_limit")),
            auto_renew=chance.random() < 0.5,
            max_poll_records=chance.choice((1, 5, 500)),
        )
        asked = Asked(self, life)
        held: list[ShareRecord] = []
        ends_s = loop.now_s + chance.choice((3.0, 8.0, 60.0)) * chance.uniform(0.5, 1.5)
        dies = chance.random() < 0.5
        while not self.stopped and (self._calm or dies or loop.now_s < ends_s):
            dies = dies and not self._calm
            try:
                records = await self._poll(life, consumer, asked, chance.choice((0.05, 0.5, 2.0)))
                for record in records:
                    if dies and loop.now_s >= ends_s:
                        await life.die()
                    self._decide(life, consumer, record, implicit, held, chance)
                    await self._pause(life, chance)
                if held and (self._calm or chance.random() < 0.3):
                    self._accept(consumer, held.pop())
                if records and chance.random() < 0.3:
                    await life.wait(consumer.commit())
            except KafkaError:
                await life.sleep(0.1)
        try:
            await life.wait(consumer.close(CLOSE_S))
        except KafkaError:
            pass

    async def _poll(self, life: Face, consumer: Any, asked: Asked, timeout_s: float) -> list[ShareRecord]:
        asked.now(consumer)
        records: list[ShareRecord] = await life.wait(consumer.poll(timeout_s))
        for record in records:
            since_s, epoch = asked.of(consumer, record)
            key, value = key_of(record), text(record.value)
            now_s = self.world.loop.now_s
            self.world.note("taken", f"{life.node} {value} {key[1]}-{key[2]} delivery {record.delivery_count}")
            invariant, how = self.promises.delivered(key, value, record.delivery_count, since_s, epoch, now_s)
            if invariant and not (invariant == "NeverEarly" and self.clocks_jump):
                self.fault(invariant, f"{life.node}: {how}")
        return records

    def _decide(
        self,
        life: Face,
        consumer: Any,
        record: ShareRecord,
        implicit: bool,
        held: list[ShareRecord],
        chance: random.Random,
    ) -> None:
        drawn = 0.0 if self._calm else chance.random()
        if implicit:
            self.promises.accepted.add(text(record.value))  # by the next poll, whatever comes between
        if drawn < 0.6:
            if not implicit:
                self._accept(consumer, record)
        elif drawn < 0.85:
            self._release(life, consumer, record, chance.choice((0.0, 0.0, 0.3, 2.0, 6.0)))
        elif drawn < 0.9:
            self.promises.rejected.add(text(record.value))
            consumer.reject(record)
        elif not implicit:
            held.append(record)
            if drawn < 0.95:
                consumer.renew(record)

    def _accept(self, consumer: Any, record: ShareRecord) -> None:
        self.promises.accepted.add(text(record.value))
        consumer.accept(record)

    def _release(self, life: Face, consumer: Any, record: ShareRecord, delay_s: float) -> None:
        backoff_s = min(self._backoff_s * 2 ** (record.delivery_count - 1), 4.0) / 2  # less the jitter
        least_s = delay_s or (backoff_s if record.topic == "t" else 0.0)
        self.promises.releasing(str(life.node), key_of(record), least_s, self.world.loop.now_s)
        consumer.release(record, delay=delay_s)

    async def _pause(self, life: Face, chance: random.Random) -> None:
        if not self._calm and chance.random() < 0.2:
            await life.sleep(chance.choice((0.0, 0.05, 0.4)))

    # The end.

    async def check(self, limit_s: float) -> None:
        self.judge_broken()
        self._calm = True
        sent = [each for each in self.load.sent.values() if not each.loose]
        wanted = {value.decode() for each in sent for value in each.acknowledged}
        await self._all_finished(wanted, limit_s + (LARGEST_JUMP_S if self.clocks_jump else 0))
        await self._probe(limit_s)
        for key in (("t", 0), ("t", 1)):
            await self._move(key, limit_s)
        await asyncio.sleep(AFTERWARDS_S)  # nothing is left to come
        self.stop()
        if not await self.end(limit_s):
            raise Broken("Healthy", "a member of the share group did not end")
        self.judge_broken()

    async def _all_finished(self, wanted: set[str], limit_s: float) -> None:
        end_s = self.world.loop.now_s + limit_s
        while missing := self.promises.missing(
            wanted, await self._read_letters(LETTERS, 2, limit_s) if self._letters else None
        ):
            if self.world.loop.now_s > end_s:
                raise Broken("Conserved", f"{len(missing)} records were finished by no member, such as {missing[:3]}")
            await asyncio.sleep(LOOK_S)

    async def _read_letters(self, topic: str, partitions: int, limit_s: float) -> set[str]:
        polls = await self.collect(topic, partitions, "read_uncommitted", limit_s)
        return {text(record.value) for records in polls for record in records}

    async def _probe(self, limit_s: float) -> None:
        """Records of a member that dies come back at once; released ones at their time, although the leaders change."""
        wanted = [f"probe{number}" for number in range(PROBES)]
        await self._within(limit_s, self.spawn(self._send(wanted)), "the records of the probe were not stored")
        first = self._take(wanted, "die")
        if not await self.world.until(lambda: set(wanted) <= self.promises.came, limit_s):
            raise Broken("Conserved", "the records of the probe do not come")
        second = self._take(wanted, "release")  # it has a session when the first one dies
        await self._within(limit_s, first, "a member did not die")
        await self._within(SOON_S, second, "records of a member that died do not come back before their lock ends")
        for key in ((PROBE, 0), STATE):
            await self._move(key, limit_s)
        third = self._take(wanted, "reject")
        late_s = LARGEST_JUMP_S if self.clocks_jump else SOON_S
        await self._within(DELAY_S + late_s, third, "released records do not come back at their time")

        await self._move((PROBE, 0), limit_s)
        self._take(["none"], "look")  # a fetch brings the share partition back
        await self.world.create_topic(PROBE_LETTERS, 1, config={"errors.deadletterqueue.group.enable": "true"})
        end_s = self.world.loop.now_s + limit_s
        while not set(wanted) <= await self._read_letters(PROBE_LETTERS, 1, limit_s):
            if self.world.loop.now_s > end_s:
                raise Broken("Conserved", "rejected records got no dead letter when their topic was there at last")
            await asyncio.sleep(LOOK_S)

    async def _send(self, values: list[str]) -> None:
        producer = Producer(self.world.bootstrap, delivery_timeout_ms=60_000, max_block_ms=60_000, **TIMES)
        for each in [await producer.send(PROBE, value.encode(), partition=0) for value in values]:
            await each
        await producer.close()

    def _take(self, wanted: list[str], then: str) -> asyncio.Task[None]:
        life = self.start(self.chance)
        life.begin(self._taker(life, set(wanted), then))
        taking: asyncio.Task[None] = self.world.loop.create_task(self.over(life))
        return taking

    async def _taker(self, life: Face, wanted: set[str], then: str) -> None:
        consumer = self._consumer(life, PROBE, PROBE, share_acknowledgement_mode="explicit")
        asked = Asked(self, life)
        while wanted and not self.stopped:
            try:
                records = await self._poll(life, consumer, asked, 0.5)
            except KafkaError:
                await life.sleep(0.1)
                continue
            for record in records:
                wanted.discard(text(record.value))
                if then == "release":
                    self._release(life, consumer, record, DELAY_S)
                elif then == "reject":
                    consumer.reject(record)
        if then == "die":
            await life.sleep(LAST_S)
            await life.die()
        await life.wait(consumer.close(CLOSE_S))

    async def _within(self, limit_s: float, task: asyncio.Task[None], otherwise: str) -> None:
        if task in self._tasks:
            self._tasks.remove(task)
        await asyncio.wait([task], timeout=limit_s)
        if not task.done():
            self.judge_broken()
            raise Broken("Conserved", otherwise)
        task.result()
        self.judge_broken()

    async def _move(self, key: TopicPartition, limit_s: float) -> None:
        """Have another broker lead."""
        world, before, end_s = self.world, self.world.leader(key), self.world.loop.now_s + limit_s
        while before >= 0 and world.leader(key) in (-1, before):
            if world.loop.now_s > end_s:
                raise Broken("Healthy", f"{key} cannot be led by another broker than {before}")
            await world.make_leader(key, self.chance.choice([each for each in world.slots if each != before]))
            await asyncio.sleep(0.5)


def key_of(record: ShareRecord) -> tuple[str, int, int]:
    return record.topic, record.partition, record.offset
