"""The producer on asyncio. For records, deliveries and settings see `ixion.clients.producer`.

    async with Producer("127.0.0.1:9092") as producer:
        future = await producer.send("orders", b"value", key=b"order-17")      # accepted
        delivery = await future                                                # acknowledged

`send` suspends only when the record must wait (for metadata, for room) and when a batch has filled up, so that answers
can be read. A batch that a task awaits does not linger; batches of one turn of the loop are still sent together.
Callbacks run in the loop. A producer belongs to the loop in which it was created.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from ixion.clients.address import Bootstrap, parse_bootstrap
from ixion.clients.aio.engine import AioEngine
from ixion.clients.aio.guard import NoLock
from ixion.clients.callbacks import run_due
from ixion.clients.core.checks import check_long
from ixion.clients.core.connection import NEVER
from ixion.clients.core.producer.batch import Batch, Delivery, Due, OnDelivery
from ixion.clients.core.producer.machine import ProducerMachine
from ixion.clients.core.producer.preparing import Preparing, as_bytes, without_code
from ixion.clients.engine import random
from ixion.clients.faults import TimedOutError
from ixion.clients.log import records, warn_unclosed
from ixion.clients.metadata import TopicPartition
from ixion.clients.settings import ProducerOptions, read_producer_settings
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.builder import Headers

if TYPE_CHECKING:
    from ixion.clients.aio.transaction import AioTransactionBlock
    from ixion.clients.core.producer.group_offsets import GroupMetadata


class DeliveryFuture:
    """One record on its way; await it for its delivery. Its error is raised."""

    __slots__ = ("_batch", "_index", "_producer")

    def __init__(self, producer: Producer, batch: Batch, index: int) -> None:
        self._producer = producer
        self._batch = batch
        self._index = index

    def done(self) -> bool:
        return self._batch.part_of(self._index).is_done

    def __await__(self) -> Generator[Any, None, Delivery]:
        while not (part := self._batch.part_of(self._index)).is_done:
            yield from self._producer._settling(part).__await__()
        delivery = self._batch.delivery(self._index)
        if delivery.error is not None:
            raise delivery.error
        return delivery


class Producer:
    """Sends records to topics, on asyncio; `ixion.clients.ProducerOptions` has its settings."""

    _is_closed = True  # until it is made

    def __init__(self, bootstrap: Bootstrap = "", **settings: Unpack[ProducerOptions]) -> None:
        """Inside a coroutine. TypeError or ValueError, naming it, for a wrong setting or address."""
        self._settings = read_producer_settings(settings)
        self._machine = ProducerMachine(parse_bootstrap(bootstrap), without_code(self._settings), random)
        self._machine.client.warns = True
        self._preparing = Preparing(self._settings) if Preparing.is_needed(self._settings) else None
        self._callbacks = Callbacks(self._machine.due)
        self._engine = AioEngine(self._machine, self._callbacks.run)
        self._lock = NoLock()
        self._sender = self._machine.sender
        self._turns = self._machine.turns
        self._hurried: list[Batch] = []
        self._is_closed = False

    def __del__(self) -> None:
        """Not closed, and no longer reachable: what is left is sent while the loop runs. Copies in a forked child, and
        producers left at the end of the program, are ignored."""
        if not self._is_closed and not self._engine.is_forked and not sys.is_finalizing():
            self._is_closed = True
            count = self._machine.unacknowledged
            self._engine.abandon()
            warn_unclosed(self, "producer", f": {records(count)} not acknowledged yet" if count else "")

    async def send(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        headers: Headers | dict[str, bytes | None] = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> DeliveryFuture:
        """Hand over a record. KafkaError if it is refused at once: too large, no such topic, no room in time."""
        self._engine.check()
        if self._is_closed or self._engine.is_forked or self._sender.fatal is not None:
            raise self._unusable()
        if isinstance(headers, dict):
            headers = tuple(headers.items())
        if self._preparing is not None:
            record = self._preparing.prepare(topic, value, key, headers, timestamp_ms, partition)
            topic, value, key, headers, timestamp_ms, partition = record
            on_delivery = self._preparing.wish(on_delivery)
        if value is not None and type(value) is not bytes:
            value = as_bytes("value", value)
        if key is not None and type(key) is not bytes:
            key = as_bytes("key", key)
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        else:
            check_long("timestamp_ms", timestamp_ms)
        batch: Batch | None = None
        now_s = time.monotonic()
        if not self._turns or self._turns.is_free(topic):
            batch = self._machine.append(topic, partition, key, value, headers, timestamp_ms, on_delivery, now_s)
        if batch is None:
            batch = await self._append_later(topic, partition, key, value, headers, timestamp_ms, on_delivery)
        future = DeliveryFuture(self, batch, batch.count - 1)
        if self._sender.is_awake:
            self._engine.pump()
            await asyncio.sleep(0)
        elif self._sender.wake_s < self._engine.planned_s or self._engine.planned_s < now_s:
            self._engine.set_timer()
        return future

    # The blocking face is made from here on (python -m devtools.blocking) …

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
        else:
            text = f"not acknowledged when the producer was left on {type(error).__name__}"
            await self._end(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, text))

    async def send_and_wait(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        headers: Headers | dict[str, bytes | None] = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
        timeout_s: float | None = None,
    ) -> Delivery:
        """Send a record and wait until it is acknowledged. Raises its error."""
        future = await self.send(topic, value, key=key, headers=headers, timestamp_ms=timestamp_ms, partition=partition)
        delivery = await self._delivery(future._batch, future._index, timeout_s)
        if delivery.error is not None:
            raise delivery.error
        return delivery

    async def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record sent before is settled. Raises the first failure since the last flush."""
        await self._flush(timeout_s)
        if self._sender.fatal is not None:
            raise self._sender.fatal

    async def _flush(self, timeout_s: float | None) -> None:
        self._check_open()
        until_s = NEVER if timeout_s is None else time.monotonic() + timeout_s
        with self._lock:
            self._machine.seal_all()
            left = deque(self._machine.incomplete)

            def is_flushed() -> bool:
                while left and left[0].is_settled():
                    left.popleft()
                return not left

            await self._engine.wait(is_flushed, until_s)
        self._callbacks.run()
        self._callbacks.finish(until_s)
        if left:
            count = len({batch.place for batch in left})
            raise TimedOutError(f"records for {count} partitions are not settled within {timeout_s or 0:.3g} s")
        failure, self._sender.refused = self._sender.refused, None
        if failure is not None:
            raise failure

    async def init_transactions(self, timeout_s: float | None = None) -> None:
        """Call this once, before the first transaction: it ends an earlier producer's open transaction."""
        await self._transact(self._machine.the_transactions().init, "init_transactions", timeout_s)

    async def begin_transaction(self) -> None:
        """Begin a transaction; all records that are sent from now on belong to it."""
        self._check_open()
        with self._lock:
            if self._sender.fatal is not None:
                raise self._sender.fatal
            self._machine.the_transactions().begin()

    def transaction(self) -> AioTransactionBlock:
        """A block that is a transaction: committed at its end, aborted on an exception."""
        from ixion.clients.aio.transaction import AioTransactionBlock

        return AioTransactionBlock(self)

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, int], group: str | GroupMetadata, timeout_s: float | None = None
    ) -> None:
        """Commit offsets of a consumer group as part of the transaction."""
        from ixion.clients.core.producer.group_offsets import GroupMetadata

        member = GroupMetadata(group) if isinstance(group, str) else group
        transactions = self._machine.the_transactions()
        await self._transact(lambda: transactions.send_offsets(offsets, member), "send_offsets", timeout_s)

    async def commit_transaction(self, timeout_s: float | None = None) -> None:
        """Flush and commit. KafkaError if a record failed: then call `abort_transaction`. FencedError if another
        producer has taken over the transactional id."""
        await self._transact(self._machine.commit, "commit_transaction", timeout_s)

    async def abort_transaction(self, timeout_s: float | None = None) -> None:
        """Abort the transaction; records that were not sent yet fail."""
        await self._transact(self._machine.abort, "abort_transaction", timeout_s)
        self._sender.refused = None

    async def close(self, timeout_s: float | None = None) -> None:
        """Flush and close; an open transaction is aborted. Records that are not acknowledged by then fail."""
        if self._is_closed or self._engine.is_forked:
            return
        try:
            transactions = self._machine.transactions
            if transactions is not None and transactions.is_open and self._sender.fatal is None:
                await self.abort_transaction(timeout_s)
            await self._flush(timeout_s)  # step 10.2
        finally:
            await self._end(TimedOutError("not acknowledged before the producer was closed"))

    def metrics(self) -> dict[str, int]:
        """Current counters and gauges, by Kafka's names."""
        if self._engine.is_forked:
            raise self._unusable()
        with self._lock:
            return self._machine.metrics()

    async def partitions_for(self, topic: str) -> int:
        """How many partitions a topic has. KafkaError if no broker answers that within `max_block_ms`."""
        self._check_open()
        with self._lock:
            cluster = self._machine.client.cluster
            max_block_s = self._settings.max_block_s
            is_known = lambda: cluster.want(topic, time.monotonic()) is not None  # noqa: E731
            if not await self._engine.wait(is_known, time.monotonic() + max_block_s):
                raise self._machine.why_it_waits(topic, max_block_s)
            return len(cluster.topics[topic].partitions)

    @property
    def buffered_bytes(self) -> int:
        """Used bytes of `buffer_memory`."""
        return self._machine.used_bytes

    async def _append_later(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp_ms: int,
        on_delivery: OnDelivery | None,
    ) -> Batch:
        """Wait for metadata or room, in the order of the calls. The lock is held, and given up while waiting."""
        found: list[Batch] = []
        machine = self._machine
        turn = machine.turns.take(topic)
        max_block_s = self._settings.max_block_s

        def is_appended() -> bool:
            if self._is_closed or self._sender.fatal is not None:
                return True
            if machine.turns.is_next(turn):
                now_s = time.monotonic()
                batch = machine.append(topic, partition, key, value, headers, timestamp_ms, on_delivery, now_s)
                if batch is not None:
                    found.append(batch)
                    return True
            return False

        try:
            await self._engine.wait(is_appended, time.monotonic() + max_block_s)
        finally:
            machine.turns.give_up(turn)
        if found:
            return found[0]
        if self._is_closed or self._sender.fatal is not None:
            raise self._unusable()
        raise machine.why_it_waits(topic, max_block_s)

    async def _transact(self, act: Callable[[], None], what: str, timeout_s: float | None) -> None:
        """Start an act of the transaction and wait until it is done."""
        self._check_open()
        within_s = self._settings.max_block_s if timeout_s is None else timeout_s
        transactions = self._machine.the_transactions()
        with self._lock:
            act()
            await self._engine.wait(lambda: transactions.is_settled, time.monotonic() + within_s)
        self._callbacks.run()
        transactions.check()
        if not transactions.is_settled:
            raise TimedOutError(f"{what} is not done within {within_s:.3g} s; call it again to continue")

    def _check_open(self) -> None:
        if self._is_closed or self._engine.is_forked:
            raise self._unusable()

    def _unusable(self) -> Exception:
        if self._engine.is_forked:
            return RuntimeError("this producer was made by another process; a forked child needs one of its own")
        if self._is_closed:
            return ValueError("the producer is closed")
        assert self._sender.fatal is not None
        return self._sender.fatal

    # … to here.

    async def _delivery(self, batch: Batch, index: int, timeout_s: float | None) -> Delivery:
        try:
            async with asyncio.timeout(timeout_s):
                while not (part := batch.part_of(index)).is_done:
                    await self._settling(part)
        except TimeoutError:
            raise TimedOutError(f"{batch.place}: not settled within {timeout_s or 0:.3g} s") from None
        return batch.delivery(index)

    def _settling(self, batch: Batch) -> asyncio.Future[None]:
        """A future that is done when the batch is settled or split. The batch does not linger."""
        waiter = self._engine.loop.create_future()
        batch.watchers.append(Watcher(waiter))
        self._hurried.append(batch)
        self._engine.loop.call_soon(self._hurry)
        return waiter

    def _hurry(self) -> None:
        """Send later in the same turn of the loop, so that tasks which send and wait share a batch."""
        hurried, self._hurried = self._hurried, []
        for batch in hurried:
            self._machine.hurry(batch)
        if self._sender.is_awake:
            self._engine.pump()

    async def _end(self, error: KafkaError) -> None:
        """Close the connections and fail the remaining records. Every callback runs."""
        self._engine.check()
        if not self._is_closed:
            self._is_closed = True
            self._machine.close(error, time.monotonic())
            self._engine.stop()
            self._engine.release()
            await self._engine.join()


class Callbacks:
    """Runs due callbacks, in order. It does not refer to the producer (see `AioEngine`)."""

    def __init__(self, due: Due) -> None:
        self._due = due
        self._is_running = False

    def run(self) -> None:
        if self._is_running:
            return
        self._is_running = True
        try:
            run_due(self._due)
        finally:
            self._is_running = False

    def finish(self, until_s: float) -> None:
        """Nothing to wait for: the loop runs them."""


class Watcher:
    """Wakes a task when its batch is settled."""

    __slots__ = ("_waiter",)

    def __init__(self, waiter: asyncio.Future[None]) -> None:
        self._waiter = waiter

    def __call__(self) -> None:
        if not self._waiter.done():
            self._waiter.set_result(None)
