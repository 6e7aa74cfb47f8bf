"""Transactions over two partitions, some of them aborted, by producers that die; and exactly-once copies."""

from __future__ import annotations

import asyncio
from typing import Any

from devtools.history.copies import check_copies
from devtools.history.operation import Outcome, Poll, Send
from devtools.sim.broken import Broken
from devtools.sim.job import TIMES, Job, polls
from ixion.clients.aio import Consumer, Producer
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import ErrorCode, KafkaError

PARTITIONS = 2
READER = 10_000


class Transactions(Job):
    """read_committed: all of a transaction or nothing, nothing of an aborted one, and in order."""

    async def prepare(self) -> None:
        await self.world.create_topic("x", PARTITIONS)

    def begin(self) -> None:
        self._processes = 0
        self._values = 0
        for number in range(2):
            self.spawn(self._transact(number))
        self.spawn(self._follow())

    async def _transact(self, number: int) -> None:
        while not self.stopped:
            self._processes += 1
            process = self._processes  # another one after each that failed
            producer = Producer(
                self.world.bootstrap,
                transactional_id=f"x{number}",
                transaction_timeout_ms=10_000,
                delivery_timeout_ms=20_000,
                max_block_ms=20_000,
                linger_ms=0,
                **TIMES,
            )
            try:
                await producer.init_transactions()
                while not self.stopped:
                    if not await self._one(producer, process):
                        break
                    await asyncio.sleep(self.chance.expovariate(1 / 0.4))
            except KafkaError:
                await asyncio.sleep(0.2)
            try:
                await producer.close(2.0)
            except KafkaError:
                pass

    async def _one(self, producer: Producer, process: int) -> bool:
        """False if the producer cannot go on."""
        await producer.begin_transaction()
        sends = []
        abort = self.chance.random() < 0.3
        dies = self.chance.random() < 0.05
        at = len(self.history)
        try:
            for _ in range(self.chance.choice((1, 2, 4))):
                self._values += 1
                partition, value = self._values % PARTITIONS, f"x{self._values}"
                sends.append(Send(key=f"x-{partition}", value=value))
                await producer.send("x", value.encode(), partition=partition)
            if self.chance.random() < 0.5:
                await asyncio.sleep(self.chance.uniform(0, 0.5))  # readers must not see it meanwhile
            if dies:
                self.told(process, Outcome.INFO, "txn", [*sends])
                return False
            if abort:
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
        except KafkaError as error:
            self.told(process, Outcome.INFO, "txn", [*sends])
            if error.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise Broken("Sequence", f"{sends}: the leader lacks what came before") from None
            return False
        assert len(self.history) >= at
        self.told(process, Outcome.FAIL if abort else Outcome.OK, "txn", [*sends])
        return True

    async def _follow(self) -> None:
        """One reader from the start to the end; what it lacks at the end shows in the last reads."""
        consumer = Consumer(
            self.world.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest", **TIMES
        )
        await consumer.assign([Place("x", number) for number in range(PARTITIONS)])
        while not self.stopped:
            try:
                self.told(READER, Outcome.OK, "poll", polls(await consumer.poll(0.5)))
            except KafkaError:
                await asyncio.sleep(0.1)
        await consumer.close()

    async def check(self, limit_s: float) -> None:
        self.stop()
        if not await self.end(limit_s):
            raise Broken("Healthy", "a transaction did not end")
        # The last stable offset must move on: transactions of producers that died are aborted after their timeout.
        if not await self.world.until(lambda: self._is_stable("x"), limit_s):
            raise Broken("Healthy", f"a transaction of x hangs after {limit_s:g} s")
        await self.read_all("x", PARTITIONS, READER + 1, "read_committed", limit_s)
        self.judge(self.history)

    def _is_stable(self, topic: str) -> bool:
        """Whether nothing of a topic belongs to an open transaction."""
        for number in range(PARTITIONS):
            leader = self.world.slots.get(self.world.leader((topic, number)))
            if leader is None or leader.broker is None:
                return False
            partition = leader.broker.parts.replicas.partitions.get((topic, number))
            if partition is None or partition.log.last_stable_offset != partition.log.end_offset:
                return False
        return True


class Copies(Transactions):
    """A group reads t and copies it to x, each record and its offset in one transaction."""

    def begin(self) -> None:
        self._copied: set[tuple[int, int]] = set()
        for number in range(2):
            self.spawn(self._copy(number))

    async def _copy(self, number: int) -> None:
        life = 0
        while not self.stopped:
            life += 1
            consumer = Consumer(
                self.world.bootstrap,
                group="copies",
                topics=["t"],
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=6_000,
                heartbeat_interval_ms=1_000,
                max_poll_records=20,
                default_api_timeout_ms=5_000,
                **TIMES,
            )
            producer = Producer(
                self.world.bootstrap,
                transactional_id=f"copy{number}",
                transaction_timeout_ms=10_000,
                delivery_timeout_ms=10_000,
                max_block_ms=10_000,
                linger_ms=0,
                **TIMES,
            )
            try:
                await producer.init_transactions()
                while not self.stopped:
                    records = await consumer.poll(0.5)
                    if records:
                        await self._copy_some(consumer, producer, records)
            except KafkaError:
                await asyncio.sleep(0.2)
            for each in (producer.close(2.0), consumer.close()):
                try:
                    await each
                except KafkaError:
                    pass

    async def _copy_some(self, consumer: Consumer, producer: Producer, records: list[Any]) -> None:
        await producer.begin_transaction()
        ends: dict[Place, int] = {}
        for record in records:
            value = b"copy " + (record.value or b"")
            await producer.send("x", value, partition=record.partition)
            ends[Place(record.topic, record.partition)] = record.offset + 1
        await producer.send_offsets(ends, consumer.group_metadata())
        await producer.commit_transaction()
        self._copied.update((record.partition, record.offset) for record in records)

    async def check(self, limit_s: float) -> None:
        world = self.world

        def all_copied() -> bool:
            for number in range(PARTITIONS):
                leader = world.slots.get(world.leader(("t", number)))
                if leader is None or leader.broker is None:
                    return False
                log = leader.broker.parts.replicas.partitions["t", number].log
                if log.end_offset and (number, log.end_offset - 1) not in self._copied:
                    return False
            return True

        await world.until(all_copied, limit_s)  # if not: a group that was given up after its last commit; see below
        self.stop()
        if not await self.end(limit_s):
            raise Broken("Healthy", "a copier did not end")
        if not await world.until(lambda: self._is_stable("x"), limit_s):
            raise Broken("Healthy", f"a transaction of x hangs after {limit_s:g} s")
        await self.read_all("t", PARTITIONS, READER, "read_committed", limit_s)
        await self.read_all("x", PARTITIONS, READER + 1, "read_committed", limit_s)
        places: dict[tuple[str, str], set[int]] = {}
        for operation in self.history:
            for poll in operation.parts:
                assert isinstance(poll, Poll)
                for offset, value in poll.records:
                    places.setdefault((poll.key, value), set()).add(offset)
        loose = {value.decode() for sent in self.load.sent.values() if sent.loose for value in sent.values}
        for (key, value), offsets in places.items():
            topic, _, number = key.rpartition("-")
            # A producer without idempotence may write a record twice. Each of these is copied once.
            allowed = len(places.get((f"t-{number}", value.removeprefix("copy ")), ())) if topic == "x" else 1
            if len(offsets) > allowed and not (topic == "t" and value in loose):
                raise Broken("ExactlyOnce", f"{value} is {len(offsets)} times in {key}")
        for anomaly in check_copies(self.history, "t", "x"):
            raise Broken("ExactlyOnce", f"{anomaly.kind}: {anomaly.detail}")
