"""A replica manager without a broker, on a clock that the test moves, with worker threads that the test lets run.

Use it for append, fetch, high watermark and the delayed operations. For topics and leaders, see
`tests/controller/realm.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from ixion.broker.log.config import LogConfig, sibling_config
from ixion.broker.log.files import Files
from ixion.broker.log.manager import LogManager
from ixion.broker.log.prepare import Origin
from ixion.broker.log.view import Bound
from ixion.broker.replica.fetch import FetchTerms
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.results import AppendResult, FetchResult, FetchWish
from ixion.language.model.delay_names import is_sibling
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.codec.sink import joined
from ixion.language.records.batches import iter_batches
from ixion.timer import LoopTimer, ManualClock
from tests.log.support import NOW, QuickFiles, batch

SELF = 1
TOPIC_ID = bytes(range(16))


class HeldWorkers(Executor):
    """Threads whose work begins when the test says so, on the test's own thread."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, lambda: fn(*args, **kwargs)))
        return future

    def work(self) -> int:
        waiting, self.waiting = self.waiting, []
        for future, run in waiting:
            try:
                future.set_result(run())
            except Exception as error:
                future.set_exception(error)
        return len(waiting)


class World:
    """`settle` lets the loop run what is due; `advance` moves the time first."""

    def __init__(
        self, path: Path, config: LogConfig | None = None, folders: int = 1, files: Files | None = None
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock(1000)
        self.timer = LoopTimer("test", loop=self.loop, clock=self.clock)
        self.workers = HeldWorkers()
        self.config = config if config is not None else LogConfig()
        self.min_isr = 1
        self.clock_step_ms = 0  # by which the wall clock was set
        self.paths = [str(path / f"logs{number}") for number in range(folders)]
        self.failed: list[str] = []
        self.logs = LogManager(
            self.paths,
            clock_ms=self.now_ms,
            config_of=self._config_of,
            files=files if files is not None else QuickFiles(),
            on_offline=self.failed.append,
        )
        self.logs.load()
        self.replicas = ReplicaManager(
            SELF,
            self.logs,
            timer=self.timer,
            loop=self.loop,
            workers=self.workers,
            clock_ms=self.now_ms,
            monotonic_ms=lambda: self.clock.now_ms,
            min_isr_of=lambda _topic: self.min_isr,
            max_lag_ms=10_000,
        )
        self.wanted: list[tuple[int, ...]] = []
        self.replicas.on_isr_wanted = lambda _partition, isr: self.wanted.append(isr)

    def _config_of(self, topic: str) -> LogConfig:
        return sibling_config(self.config) if is_sibling(topic) else self.config

    def now_ms(self) -> int:
        return NOW - 1000 + self.clock.now_ms + self.clock_step_ms

    def settle(self) -> None:
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.settle()

    def flush(self) -> int:
        """Let the disk do what it was asked to."""
        self.settle()
        done = self.workers.work()
        self.settle()
        return done

    def close(self) -> None:
        self.replicas.shutdown()
        self.timer.shutdown()
        self.logs.abandon()
        self.settle()
        self.loop.close()

    def lead(
        self,
        topic: str = "t",
        number: int = 0,
        *,
        epoch: int = 0,
        replicas: tuple[int, ...] = (SELF,),
        isr: tuple[int, ...] | None = None,
    ) -> Partition:
        return self.replicas.lead(topic, number, TOPIC_ID, epoch, replicas if isr is None else isr, replicas)

    def produce(
        self,
        *values: bytes,
        topic: str = "t",
        number: int = 0,
        acks: int = -1,
        timeout_ms: int = 1000,
        records: bytes | None = None,
    ) -> list[AppendResult]:
        """The list fills when the produce is over; it is empty while it waits."""
        data = batch(*(values or (b"v",))) if records is None else records
        return self.produce_all([(topic, number, data)], acks=acks, timeout_ms=timeout_ms)

    def produce_all(
        self, entries: list[tuple[str, int, bytes]], *, acks: int = -1, timeout_ms: int = 1000
    ) -> list[AppendResult]:
        over: list[AppendResult] = []
        self.replicas.append(timeout_ms, acks, Origin.CLIENT, entries, over.extend)
        if len(entries) > 1:
            self.settle()  # several are appended in turns of the loop
        return over

    def fetch(
        self,
        offset: int = 0,
        *,
        topic: str = "t",
        number: int = 0,
        replica: int = -1,
        wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        partition_bytes: int = 1 << 20,
        bound: Bound | None = None,
        epoch: int = -1,
        last_epoch: int = -1,
        log_start: int = 0,
    ) -> list[FetchResult]:
        wish = FetchWish(topic, b"", number, offset, partition_bytes, epoch, last_epoch, log_start)
        return self.fetch_all(
            [wish],
            replica=replica,
            wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            bound=bound,
        )

    def fetch_all(
        self,
        wishes: list[FetchWish],
        *,
        replica: int = -1,
        wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 1 << 20,
        bound: Bound | None = None,
        rack: str = "",
    ) -> list[FetchResult]:
        if bound is None:
            bound = Bound.END if replica >= 0 else Bound.VISIBLE
        terms = FetchTerms(
            replica_id=replica,
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            bound=bound,
            rack=rack,
        )
        over: list[FetchResult] = []
        self.replicas.fetch(terms, wishes, over.extend)
        return over

    def follower_fetches(self, broker: int, offset: int, **options: Any) -> list[FetchResult]:
        """A follower that has everything below `offset`, and does not wait."""
        return self.fetch(offset, replica=broker, wait_ms=0, **options)


def codes(results: list[AppendResult]) -> list[ErrorCode]:
    return [result.code for result in results]


def offsets(result: FetchResult) -> list[int]:
    """Of every record that was read."""
    return [int(record.offset) for view in iter_batches(joined([result.records])) for record in view.records()]
