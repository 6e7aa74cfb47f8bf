"""Compaction, retention and DeleteRecords beside transactions, while brokers fail."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from devtools.history.operation import Outcome
from devtools.sim.broken import Broken
from devtools.sim.checks import is_readable
from devtools.sim.disk import SimFiles
from devtools.sim.job import TIMES, Job
from devtools.sim.keyed import Entry, Keyed, Write
from devtools.sim.patches import EPOCH_S
from devtools.sim.transactions import Copies
from ixion.broker.log import checkpoint
from ixion.broker.log.log import Log
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.broker.startup.broker import Broker
from ixion.clients.aio import Admin, Consumer, Producer
from ixion.clients.metadata import TopicPartition as Place
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batches import iter_batches

RETENTION_MS: Final = 4_000
KEYED: Final = ("k", 0)  # compacted
AGED: Final = ("r", 0)  # with retention.ms
LOOK_S: Final = 0.3
KEYS_EACH: Final = 4
CLEANER: Final = {"log.cleaner.enable": "true", "log.cleaner.backoff.ms": "600"}
COMPRESSIONS: Final = ("producer", "producer", "gzip", "lz4", "zstd", "snappy", "uncompressed")


class Cleaning(Job):
    """LastValue: each replica has the last committed record of each key. Compacted: it has no earlier ones in sealed
    segments. KeptLongEnough: nothing is deleted before its time, but by DeleteRecords. StaysDeleted: what DeleteRecords
    has deleted does not come back once the new start of the log is on the disks. OldIsGone: what is too old goes."""

    settings = {  # noqa: RUF012
        **CLEANER,
        "log.initial.task.delay.ms": "300",
        "log.retention.check.interval.ms": "700",
        "log.flush.start.offset.checkpoint.interval.ms": "800",
    }

    async def prepare(self) -> None:
        self._policy = self.chance.choice(("compact", "compact,delete"))
        config = {
            "cleanup.policy": self._policy,
            "retention.ms": "-1",
            "segment.ms": self.chance.choice(("300", "1500", "4000")),
            "min.cleanable.dirty.ratio": "0.01",
            # A replica that is away for longer would keep values whose tombstones are gone, as in Apache Kafka.
            "delete.retention.ms": "3600000",
            "compression.type": self.chance.choice(COMPRESSIONS),
        }
        await self.world.create_topic(KEYED[0], 1, config=config)
        config = {"retention.ms": str(RETENTION_MS), "segment.ms": self.chance.choice(("300", "1000"))}
        await self.world.create_topic(AGED[0], 1, config=config)

    def begin(self) -> None:
        self._model = Keyed()
        self._aged: list[tuple[int, int]] = []  # offset and timestamp of what was acknowledged
        self._asked = {KEYED: 0, AGED: 0}  # DeleteRecords below these offsets
        self._confirmed = {KEYED: 0, AGED: 0}
        self._on_disk = {KEYED: 0, AGED: 0}  # and in the checkpoints of the replicas in sync
        self._read: list[Entry] = []
        self._position = 0
        self._drained = False
        self._writes = 0
        self._writers = [self.spawn(self._transact(number)) for number in range(2)]
        self.spawn(self._age())
        self.spawn(self._follow())
        self.spawn(self._delete())
        self.world.loop.spawn(None, self._watch())

    @property
    def _now_ms(self) -> int:
        return int((EPOCH_S + self.world.loop.now_s) * 1_000)

    # Clients.

    async def _transact(self, number: int) -> None:
        while not self.stopped:
            producer = Producer(
                self.world.bootstrap,
                transactional_id=f"k{number}",
                transaction_timeout_ms=10_000,
                delivery_timeout_ms=20_000,
                max_block_ms=20_000,
                linger_ms=0,
                **TIMES,
            )
            try:
                await producer.init_transactions()
                while not self.stopped:
                    await self._one(producer, number)
                    await asyncio.sleep(self.chance.expovariate(1 / 0.3))
            except KafkaError:
                await asyncio.sleep(0.2)
            try:
                await producer.close(2.0)
            except KafkaError:
                pass

    async def _one(self, producer: Producer, number: int) -> None:
        await producer.begin_transaction()
        abort = self.chance.random() < 0.3
        sent: list[tuple[Write, Any]] = []
        for _ in range(self.chance.choice((1, 2, 5))):
            self._writes += 1
            key = b"%d.%d" % (number, self.chance.randrange(KEYS_EACH))
            write = Write(key, None if self.chance.random() < 0.15 else b"k%d" % self._writes)
            self._model.add(write)
            sent.append((write, await producer.send(KEYED[0], write.value, key=key, partition=0)))
        if self.chance.random() < 0.3:
            await asyncio.sleep(self.chance.choice((0.1, 1.0, 3.0)) * self.chance.random())  # it may span segments
        await (producer.abort_transaction() if abort else producer.commit_transaction())
        for write, future in sent:
            write.outcome = Outcome.FAIL if abort else Outcome.OK
            if not abort:
                write.offset = (await future).offset

    async def _age(self) -> None:
        producer = Producer(self.world.bootstrap, linger_ms=0, delivery_timeout_ms=30_000, max_block_ms=30_000, **TIMES)
        while not self.stopped:
            timestamp_ms = self._now_ms - self.chance.choice((0, 0, 1_500))
            try:
                sent = await producer.send_and_wait(AGED[0], b"r", partition=0, timestamp_ms=timestamp_ms)
                self._aged.append((sent.offset, timestamp_ms))
            except KafkaError:
                pass
            await asyncio.sleep(self.chance.expovariate(1 / 0.3))
        await producer.close()

    async def _delete(self) -> None:
        admin = Admin(self.world.bootstrap, default_api_timeout_ms=6_000, **TIMES)
        while not self.stopped:
            await asyncio.sleep(self.chance.expovariate(1 / 2.0))
            key = self.chance.choice((KEYED, AGED)) if "delete" in self._policy else AGED
            if key == AGED:
                known = [offset for offset, _ in self._aged[-6:]]
            else:
                known = [each.offset for some in self._model.writes.values() for each in some if each.offset >= 0]
            if not known:
                continue
            below = self.chance.choice(known)
            self._asked[key] = max(self._asked[key], below)
            self._model.deleted = self._asked[KEYED]
            lives = {number: slot.starts for number, slot in self.world.slots.items()}
            try:
                (await admin.delete_records({Place(*key): below})).check()
            except KafkaError as error:
                self.world.note("note", f"delete {key} below {below}: {error.code.name}")
                continue
            self._deleted(key, below, lives)
        await admin.close()

    def _deleted(self, key: tuple[str, int], below: int, lives: dict[int, int]) -> None:
        """Confirmed: every replica in sync that has lived since before the request has deleted it."""
        self._confirmed[key] = max(self._confirmed[key], below)
        state = self.world.state(key)
        assert state is not None
        for number, log in self._logs(key):
            if number in state.isr and self.world.slots[number].starts == lives[number] and log.log_start < below:
                raise Broken("StaysDeleted", f"{key} below {below}: b{number} begins at {log.log_start}, and confirmed")

    async def _follow(self) -> None:
        """One reader at read_committed from the start to the end."""
        consumer = Consumer(
            self.world.bootstrap, isolation_level="read_committed", auto_offset_reset="earliest", **TIMES
        )
        place = Place(*KEYED)
        await consumer.assign([place])
        while not self._drained:
            try:
                self._read += [_entry(record) for record in await consumer.poll(0.5)]
                self._position = await consumer.position(place)
            except KafkaError:
                await asyncio.sleep(0.1)
        await consumer.close()

    # What must hold all the time.

    async def _watch(self) -> None:
        while not self._drained:
            for key in (KEYED, AGED):
                self._look(key)
            await asyncio.sleep(LOOK_S)

    def _look(self, key: tuple[str, int]) -> None:
        state = self.world.state(key)
        if state is None:
            return
        checkpointed: list[int] = []
        for number, log in self._logs(key):
            broker = self.world.slots[number].broker
            assert broker is not None
            for offset, timestamp_ms in self._aged if key == AGED and not self.clocks_jump else ():
                if self._asked[key] <= offset < log.log_start and self._now_ms - timestamp_ms <= RETENTION_MS:
                    age_ms = self._now_ms - timestamp_ms
                    self._break("KeptLongEnough", f"{key} at {offset}: deleted on b{number} at {age_ms} ms")
            if key == KEYED and log.log_start > self._asked[key]:
                self._break("KeptLongEnough", f"{key}: b{number} begins at {log.log_start}")
            partition = broker.parts.replicas.partitions.get(key)
            leads = partition is not None and partition.leads and partition.leader_epoch == state.leader_epoch
            if number == state.leader and leads and log.log_start < self._on_disk[key]:
                self._break("StaysDeleted", f"{key}: b{number} begins at {log.log_start}, not {self._on_disk[key]}")
            if number in state.isr:
                checkpointed.append(_checkpointed(broker, log))
        # A leader that was alone may lose its disk; then one leads that had left the ISR before the deletion.
        if len(checkpointed) == len(state.isr) > 1:
            self._on_disk[key] = max(self._on_disk[key], min(self._confirmed[key], *checkpointed))

    def _break(self, invariant: str, text: str) -> None:
        self.broken = self.broken or Broken(invariant, text)

    def _logs(self, key: tuple[str, int]) -> Iterator[tuple[int, Log]]:
        for number, broker in self.world.running():
            partition = broker.parts.replicas.partitions.get(key)
            if partition is not None and is_readable(partition.log):
                yield number, partition.log

    # And at the end.

    async def check(self, limit_s: float) -> None:
        self.stop()
        until = self.world.until
        await asyncio.wait(self._writers, timeout=limit_s)
        if not await until(self._is_stable, limit_s):
            raise Broken("Healthy", f"a transaction of {KEYED} hangs after {limit_s:g} s")
        await until(lambda: self._position >= self._end_of_keyed(), limit_s)
        self._drained = True
        if not await self.end(limit_s):
            raise Broken("Healthy", "a client did not end")
        if self.broken is not None:
            raise self.broken
        records = [_entry(record) for some in await self.collect("k", 1, "read_committed", limit_s) for record in some]
        for what, wrong in (
            ("read", self._model.wrong_read(records, whole=True)),
            ("read along", self._model.wrong_read(self._read, whole=False)),
        ):
            if wrong:
                raise Broken("LastValue", f"{what}: " + "; ".join(wrong[:3]))
        if not await until(lambda: not self._left(), limit_s):
            raise Broken("Compacted" if "k-0" in self._left() else "OldIsGone", self._left())
        for number, log in self._logs(KEYED):
            wrong = self._model.wrong_log(self._entries(number, log, log.end_offset), log.log_start)
            if wrong:
                raise Broken("LastValue", f"b{number}: " + "; ".join(wrong[:3]))
        for key in (KEYED, AGED):
            for number, log in self._logs(key):
                if log.log_start < self._on_disk[key]:
                    raise Broken("StaysDeleted", f"{key}: b{number} begins at {log.log_start}")

    def _is_stable(self) -> bool:
        logs = dict(self._logs(KEYED))
        leader = logs.get(self.world.leader(KEYED))
        return leader is not None and leader.last_stable_offset == leader.end_offset

    def _end_of_keyed(self) -> int:
        logs = dict(self._logs(KEYED))
        leader = logs.get(self.world.leader(KEYED))
        return 1 << 60 if leader is None else leader.end_offset

    def _left(self) -> str:
        """What compaction and retention have still to delete."""
        for number, log in self._logs(KEYED):
            doomed = self._model.superseded(self._entries(number, log, log.segments.active.base_offset))
            if doomed:
                return f"k-0 on b{number} still has {doomed[:5]}"
        for number, log in self._logs(AGED):
            if log.log_start < log.end_offset:
                return f"r-0 on b{number} still has {log.log_start} to {log.end_offset}"
        return ""

    def _entries(self, number: int, log: Log, below: int) -> list[Entry]:
        broker = self.world.slots[number].broker
        assert broker is not None
        disk = broker.parts.options.files
        assert isinstance(disk, SimFiles)
        found: list[Entry] = []
        with disk.looked_at():
            offset = log.log_start
            while offset < below:
                before = offset
                for view in iter_batches(read(log, offset, 1 << 20, Bound.END).records):
                    if not view.is_control:
                        found += [_entry(each) for each in view if log.log_start <= each.offset < below]
                    offset = int(view.last_offset) + 1
                if offset == before:
                    break
        return found


class Swept(Copies):
    """Copies, exactly once, while the topics of offsets and transactions are compacted every second or so."""

    settings = {  # noqa: RUF012
        **CLEANER,
        "log.roll.ms": "900",
        "log.cleaner.min.cleanable.ratio": "0.01",
    }

    async def _copy_some(self, consumer: Consumer, producer: Producer, records: list[Any]) -> None:
        if self.chance.random() < 0.7:
            return await super()._copy_some(consumer, producer, records)
        # Aborted offsets must not replace those that were committed. The next copier begins with these.
        await producer.begin_transaction()
        ends = {Place(each.topic, each.partition): each.offset + 1 for each in records}
        await producer.send_offsets(ends, consumer.group_metadata())
        await producer.abort_transaction()
        raise KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "aborted")


def _entry(record: Any) -> Entry:
    value = record.value
    return int(record.offset), bytes(record.key), None if value is None else bytes(value)


def _checkpointed(broker: Broker, log: Log) -> int:
    """The log start that a crash would leave."""
    for directory in broker.parts.logs.directories:
        if directory.state is log.directory:
            return int(directory.checkpointed(checkpoint.LOG_STARTS).get((log.topic, log.partition), 0))
    return 0
