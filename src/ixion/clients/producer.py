"""Sends records: batched per partition, with several requests in flight, written once and in order.

    with Producer("127.0.0.1:9092", acks="all", linger_ms=5, compression="zstd") as producer:
        future = producer.send("orders", b"value", key=b"order-17", on_delivery=print)

`send` adds the record to the open batch of its partition and returns. It waits, up to `max_block_ms`, for the metadata
of a new topic and for room in `buffer_memory`. Batches are sent when they are full or have lingered, even if the caller
does nothing more. `future.result()` waits for one record and `flush` for all; neither lets a batch linger.

Every record that `send` accepts gets exactly one call of its `on_delivery`, with its offset or an error, however the
producer ends. Calls for one partition come in the order of `send`. Callbacks run on the thread that settles them: a
caller's, within `send`, `poll`, `flush` and `close`, or the producer's own. An error of a callback is logged. A failed
record is also raised by the next `flush` or `close`, so that it cannot pass unnoticed. Leaving a `with` block on an
exception sends nothing more: records that are not acknowledged fail.

With a `transactional_id`, records are sent in transactions:

    producer.init_transactions()
    producer.begin_transaction()
    producer.send("invoices", b"value")
    producer.send_offsets({TopicPartition("orders", 0): 18}, "billing")
    producer.commit_transaction()

Threads may share a producer. A forked child needs one of its own.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Unpack

from librt.time import time as wall_s

from ixion.clients.address import Bootstrap, parse_bootstrap
from ixion.clients.callbacks import Callbacks
from ixion.clients.core.checks import check_long
from ixion.clients.core.connection import NEVER
from ixion.clients.core.producer.batch import Batch, Delivery, OnDelivery
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
    from ixion.clients.core.producer.group_offsets import GroupMetadata
    from ixion.clients.transaction import TransactionBlock

monotonic: Final = time.monotonic  # looked up once


class DeliveryFuture:
    """The future delivery of one record."""

    __slots__ = ("_batch", "_index", "_producer")

    def __init__(self, producer: Producer, batch: Batch, index: int) -> None:
        self._producer = producer
        self._batch = batch
        self._index = index

    def done(self) -> bool:
        return self._batch.part_of(self._index).is_done

    def result(self, timeout_s: float | None = None) -> Delivery:
        """The delivery of the record; raises its error. TimedOutError if neither is known in time."""
        delivery = self._producer._delivery(self._batch, self._index, timeout_s)
        if delivery.error is not None:
            raise delivery.error
        return delivery

    def exception(self, timeout_s: float | None = None) -> KafkaError | None:
        return self._producer._delivery(self._batch, self._index, timeout_s).error


class Producer:
    """Sends records to topics; `ProducerOptions` has its settings."""

    _is_closed = True  # until it is made

    def __init__(self, bootstrap: Bootstrap = "", **settings: Unpack[ProducerOptions]) -> None:
        """TypeError or ValueError, naming it, for a wrong setting or address."""
        self._settings = read_producer_settings(settings)
        self._machine = ProducerMachine(parse_bootstrap(bootstrap), without_code(self._settings), random)
        self._machine.client.warns = True
        self._preparing = Preparing(self._settings) if Preparing.is_needed(self._settings) else None
        self._callbacks = Callbacks(self._machine, self._machine.due)
        self._engine = self._callbacks.engine
        self._lock = self._engine.lock
        self._sender = self._machine.sender
        self._due = self._machine.due
        self._turns = self._machine.turns
        self._is_closed = False

    def __del__(self) -> None:
        """Not closed, and no longer reachable: its thread sends what is left, and ends. Copies in a forked child are
        ignored, and so are producers left at the end of the program, which `engine` reports."""
        if not self._is_closed and not self._engine.is_forked and not sys.is_finalizing():
            self._is_closed = True
            count = self._machine.unacknowledged
            self._engine.abandon()
            warn_unclosed(self, "producer", f": {records(count)} not acknowledged yet" if count else "")

    def send(
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
        """Hand over a record (step 1). KafkaError if it is refused at once: too large, no such topic, no room."""
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
            timestamp_ms = int(wall_s() * 1000)
        else:
            check_long("timestamp_ms", timestamp_ms)
        if self._engine.is_forked:
            raise self._unusable()  # before the lock, which a thread of the parent may have held when it forked
        with self._lock:  # step 8.6
            if self._is_closed or self._sender.fatal is not None:
                raise self._unusable()
            now_s = monotonic()
            batch = None
            if not self._turns or self._turns.is_free(topic):
                batch = self._machine.append(topic, partition, key, value, headers, timestamp_ms, on_delivery, now_s)
            if batch is None:
                batch = self._append_later(topic, partition, key, value, headers, timestamp_ms, on_delivery)
            future = DeliveryFuture(self, batch, batch.count - 1)
            sender = self._sender
            if sender.is_awake or now_s >= sender.wake_s:
                self._engine.pump(now_s)
            elif sender.wake_s < self._engine.planned_s or not self._engine.has_thread:
                self._engine.look_after()
        if self._due:
            self._callbacks.run()
        return future

    # Made from aio/producer.py by devtools.blocking, from here on …

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if error is None:
            self.close()
        else:
            text = f"not acknowledged when the producer was left on {type(error).__name__}"
            self._end(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, text))

    def send_and_wait(
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
        future = self.send(topic, value, key=key, headers=headers, timestamp_ms=timestamp_ms, partition=partition)
        delivery = self._delivery(future._batch, future._index, timeout_s)
        if delivery.error is not None:
            raise delivery.error
        return delivery

    def flush(self, timeout_s: float | None = None) -> None:
        """Wait until every record sent before is settled. Raises the first failure since the last flush."""
        self._flush(timeout_s)
        if self._sender.fatal is not None:
            raise self._sender.fatal

    def _flush(self, timeout_s: float | None) -> None:
        self._check_open()
        until_s = NEVER if timeout_s is None else time.monotonic() + timeout_s
        with self._lock:
            self._machine.seal_all()
            left = deque(self._machine.incomplete)

            def is_flushed() -> bool:
                while left and left[0].is_settled():
                    left.popleft()
                return not left

            self._engine.wait(is_flushed, until_s)
        self._callbacks.run()
        self._callbacks.finish(until_s)
        if left:
            count = len({batch.place for batch in left})
            raise TimedOutError(f"records for {count} partitions are not settled within {timeout_s or 0:.3g} s")
        failure, self._sender.refused = self._sender.refused, None
        if failure is not None:
            raise failure

    def init_transactions(self, timeout_s: float | None = None) -> None:
        """Call this once, before the first transaction: it ends an earlier producer's open transaction."""
        self._transact(self._machine.the_transactions().init, "init_transactions", timeout_s)

    def begin_transaction(self) -> None:
        """Begin a transaction; all records that are sent from now on belong to it."""
        self._check_open()
        with self._lock:
            if self._sender.fatal is not None:
                raise self._sender.fatal
            self._machine.the_transactions().begin()

    def transaction(self) -> TransactionBlock:
        """A block that is a transaction: committed at its end, aborted on an exception."""
        from ixion.clients.transaction import TransactionBlock

        return TransactionBlock(self)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, int], group: str | GroupMetadata, timeout_s: float | None = None
    ) -> None:
        """Commit offsets of a consumer group as part of the transaction."""
        from ixion.clients.core.producer.group_offsets import GroupMetadata

        member = GroupMetadata(group) if isinstance(group, str) else group
        transactions = self._machine.the_transactions()
        self._transact(lambda: transactions.send_offsets(offsets, member), "send_offsets", timeout_s)

    def commit_transaction(self, timeout_s: float | None = None) -> None:
        """Flush and commit. KafkaError if a record failed: then call `abort_transaction`. FencedError if another
        producer has taken over the transactional id."""
        self._transact(self._machine.commit, "commit_transaction", timeout_s)

    def abort_transaction(self, timeout_s: float | None = None) -> None:
        """Abort the transaction; records that were not sent yet fail."""
        self._transact(self._machine.abort, "abort_transaction", timeout_s)
        self._sender.refused = None

    def close(self, timeout_s: float | None = None) -> None:
        """Flush and close; an open transaction is aborted. Records that are not acknowledged by then fail."""
        if self._is_closed or self._engine.is_forked:
            return
        try:
            transactions = self._machine.transactions
            if transactions is not None and transactions.is_open and self._sender.fatal is None:
                self.abort_transaction(timeout_s)
            self._flush(timeout_s)  # step 10.2
        finally:
            self._end(TimedOutError("not acknowledged before the producer was closed"))

    def metrics(self) -> dict[str, int]:
        """Current counters and gauges, by Kafka's names."""
        if self._engine.is_forked:
            raise self._unusable()
        with self._lock:
            return self._machine.metrics()

    def partitions_for(self, topic: str) -> int:
        """How many partitions a topic has. KafkaError if no broker answers that within `max_block_ms`."""
        self._check_open()
        with self._lock:
            cluster = self._machine.client.cluster
            max_block_s = self._settings.max_block_s
            is_known = lambda: cluster.want(topic, time.monotonic()) is not None  # noqa: E731
            if not self._engine.wait(is_known, time.monotonic() + max_block_s):
                raise self._machine.why_it_waits(topic, max_block_s)
            return len(cluster.topics[topic].partitions)

    @property
    def buffered_bytes(self) -> int:
        """Used bytes of `buffer_memory`."""
        return self._machine.used_bytes

    def _append_later(
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
            self._engine.wait(is_appended, time.monotonic() + max_block_s)
        finally:
            machine.turns.give_up(turn)
        if found:
            return found[0]
        if self._is_closed or self._sender.fatal is not None:
            raise self._unusable()
        raise machine.why_it_waits(topic, max_block_s)

    def _transact(self, act: Callable[[], None], what: str, timeout_s: float | None) -> None:
        """Start an act of the transaction and wait until it is done."""
        self._check_open()
        within_s = self._settings.max_block_s if timeout_s is None else timeout_s
        transactions = self._machine.the_transactions()
        with self._lock:
            act()
            self._engine.wait(lambda: transactions.is_settled, time.monotonic() + within_s)
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

    def poll(self, wait_s: float = 0.0) -> None:
        """Send lingering batches and handle answers, waiting up to `wait_s` for something to happen."""
        self._check_open()
        until_s = time.monotonic() + wait_s
        with self._lock:
            if wait_s > 0 and not self._due:
                self._engine.wait(lambda: bool(self._due), until_s)
            else:
                self._engine.pump(time.monotonic())
        self._callbacks.run()

    def _delivery(self, batch: Batch, index: int, timeout_s: float | None) -> Delivery:
        if not batch.part_of(index).is_done:
            self._check_open()
            until_s = NEVER if timeout_s is None else time.monotonic() + timeout_s
            with self._lock:
                self._machine.hurry(batch)
                self._engine.wait(lambda: batch.part_of(index).is_done, until_s)
            if not batch.part_of(index).is_done:
                raise TimedOutError(f"{batch.place}: not settled within {timeout_s or 0:.3g} s")
            self._callbacks.run()
        return batch.delivery(index)

    def _end(self, error: KafkaError) -> None:
        """Close the connections and fail the remaining records. Every callback runs."""
        if self._is_closed or self._engine.is_forked:
            return
        with self._lock:
            self._is_closed = True
            self._machine.close(error, time.monotonic())
        self._engine.stop()
        self._callbacks.run()
