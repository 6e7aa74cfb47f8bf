"""A replica manager with delayed records, on a clock that the test moves; it can be killed and started again.

Use it for rules, due times and crashes of one broker. For several replicas, use `nodes`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ixion.broker.log.config import LogConfig
from ixion.broker.log.files import Files
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import Origin
from ixion.broker.log.view import Bound
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.results import AppendResult
from ixion.broker.schedules.journal import batches
from ixion.broker.schedules.schedules import Schedules
from ixion.broker.schedules.state import State
from ixion.broker.schedules.targets import Place, Targets
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_batches
from ixion.language.records.builder import BatchBuilder, Headers
from ixion.language.records.compression import Codec
from tests.log.support import NOW, marker
from tests.replica.world import SELF, World

PRODUCER_IDS = itertools.count(7_000)  # no id is given out twice
RECORD = LogConfig(delivery_delay_mode="record")

Sent = tuple[bytes, Headers]  # a value and its headers
Read = tuple[int, bytes | None]  # an offset and a value


def records(
    *sent: Sent,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] | None = None,
    transactional: bool = False,
    timestamp: int = NOW,
) -> bytes:
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    builder = BatchBuilder(
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=transactional,
    )
    for value, headers in sent:
        builder.append(b"k", value, headers, timestamp)
    return builder.build()


def after(value: bytes, delay_ms: int, **more: bytes) -> Sent:
    """A record to be delivered in `delay_ms`; `id=b"x"` gives it the header x-schedule-id."""
    named = [(f"x-schedule-{name}", content) for name, content in more.items()]
    return value, [("x-deliver-after-ms", b"%d" % delay_ms), *named]


def cancel(what: bytes) -> Sent:
    return b"", [("x-schedule-cancel", what)]


class DelayWorld(World):
    def __init__(self, path: Path, config: LogConfig = RECORD, files: Files | None = None, folders: int = 1) -> None:
        super().__init__(path, config, folders, files)
        self.path = path
        self.logs.make_pool = lambda _count, _name: self.workers  # moves between directories
        self.schedules = self.make_schedules(self.loop)
        self.targets = Targets(self.replicas, find=self._find, ask=self._ask, producer_id=self._producer_id)

    def make_schedules(self, loop: asyncio.AbstractEventLoop) -> Schedules:
        return Schedules(
            self.replicas,
            self.logs,
            timer=self.timer,
            loop=loop,
            workers=self.workers,
            clock_ms=self.now_ms,
            monotonic_ms=lambda: self.clock.now_ms,
            targets=lambda: self.targets,
        )

    def start(self) -> Partition:
        """Lead the partition, read what waits, and finish moves."""
        partition = self.lead()
        self.replicas.moves.drop_unused(self.replicas.partitions)
        while self.flush():
            pass
        return partition

    def _find(self, topic: str, number: int) -> Place | None:
        partition = self.replicas.partition(topic, number)
        return None if partition is None else Place(SELF, partition.log.config)

    async def _ask(self, _broker: int, _api: ApiKey, _request: Struct, _oldest: int, _newest: int) -> Struct:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "this broker is alone")

    async def _producer_id(self) -> int:
        return next(PRODUCER_IDS)

    def restart(self, down_ms: int = 0, files: Files | None = None) -> DelayWorld:
        """What a killed process leaves, found by a new one."""
        self.close()
        made = DelayWorld(self.path, self.config, files, len(self.paths))
        made.clock.advance(self.clock.now_ms - made.clock.now_ms + down_ms)
        made.clock_step_ms = self.clock_step_ms
        made.start()
        return made

    def close(self) -> None:
        if not self.loop.is_closed():
            self.schedules._stopped = True  # a killed process writes no last note
            super().close()

    def begin_move(self, to: int) -> None:
        self.replicas.moves.begin(self.replicas.partitions["t", 0], self.logs.directories[to])

    def move(self, to: int) -> None:
        """Move the partition to another directory."""
        self.begin_move(to)
        while self.flush():
            pass

    def set(self, **changes: object) -> None:
        self.config = replace(self.config, **changes)  # type: ignore[arg-type]
        self.replicas.reconfigure("t")
        self.settle()

    def settle(self) -> None:
        super().settle()
        while self.schedules.working:
            super().settle()

    def send(self, *sent: Sent, **options: object) -> AppendResult:
        (result,) = self.produce(records=records(*sent, **options))  # type: ignore[arg-type]
        self.settle()
        return result

    def append(self, data: bytes, over: list[ErrorCode]) -> None:
        """A produce within one turn of the loop."""
        self.replicas.append(
            1000, 1, Origin.CLIENT, [("t", 0, data)], lambda results: over.extend(each.code for each in results)
        )

    def append_marker(self, producer: int, *, commit: bool) -> None:
        """The end of a transaction within one turn of the loop."""
        data = marker(producer, 0, commit=commit)
        self.replicas.append(1000, 1, Origin.COORDINATOR, [("t", 0, data)], lambda _: None)

    def mark(self, producer: int, epoch: int, *, commit: bool) -> None:
        assert self.produce_marker(marker(producer, epoch, commit=commit)) == ErrorCode.NONE

    def produce_marker(self, data: bytes) -> ErrorCode:
        over: list[AppendResult] = []
        self.replicas.append(1000, 1, Origin.COORDINATOR, [("t", 0, data)], over.extend)
        self.settle()
        return over[0].code

    def read(self, bound: Bound = Bound.VISIBLE) -> list[Read]:
        """What a consumer sees, batch after batch."""
        found: list[Read] = []
        log = self.target
        offset = log.log_start
        while True:
            (result,) = self.fetch(offset, wait_ms=0, bound=bound)
            assert result.code == ErrorCode.NONE
            data = joined([result.records])
            if not data:
                return found
            for view in iter_batches(data):
                if not view.is_control:
                    found += [(int(each.offset), each.value) for each in view.records() if each.offset >= offset]
                offset = int(view.last_offset) + 1

    def values(self, bound: Bound = Bound.VISIBLE) -> list[bytes | None]:
        return [value for _, value in self.read(bound)]

    def log_of(self, topic: str) -> Log:
        log = self.logs.get(topic, 0)
        assert log is not None
        return log

    @property
    def target(self) -> Log:
        return self.log_of("t")

    @property
    def sibling(self) -> Log:
        return self.log_of("__delay.t")

    @property
    def state(self) -> State:
        schedule = self.schedules.get(("t", 0))
        assert schedule is not None
        assert schedule.state is not None
        return schedule.state

    @property
    def waiting(self) -> int:
        return self.state.count


def batches_of(log: Log) -> Iterator[BatchView]:
    """Every batch of a log."""
    return batches(log, log.log_start, 1 << 20, Bound.END)
