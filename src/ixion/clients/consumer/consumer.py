"""A consumer: reads topics as a member of a group, or partitions of its choice.

    with Consumer("127.0.0.1:9092", group="billing", topics=["orders"]) as consumer:
        for record in consumer:
            print(record.topic, record.partition, record.offset, record.key, record.value)

`poll` follows the numbered steps of the consumer's document; each step is named where it is taken. Fetched records are
returned first, with the rest of a half-read fetch; the next fetches are sent before poll returns. A consumer belongs to
one thread at a time; only `wakeup` may be called from others. In a group a second thread sends heartbeats, and receives
fetches, while the caller processes its records.

`ixion.clients.core.consumer` decides; this module waits.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, TypeVar, Unpack

from ixion.clients.address import Bootstrap
from ixion.clients.consumer.batch import ColumnBatch
from ixion.clients.consumer.decoding import Decoding
from ixion.clients.consumer.face import ConsumerFace
from ixion.clients.consumer.guard import SingleThread
from ixion.clients.consumer.listener import Interceptor, RebalanceListener
from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.consumer.settings import ConsumerOptions
from ixion.clients.consumer.types import K, V
from ixion.clients.core.checks import check_most
from ixion.clients.core.consumer.commits import OffsetAndMetadata, OnCommit
from ixion.clients.core.consumer.errand import Errand
from ixion.clients.core.consumer.errors import ConsumerClosedError, WakeupError
from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.subscription import EARLIEST, LATEST
from ixion.clients.engine import Engine
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from ixion.clients.core.consumer.group import Duty

T = TypeVar("T")

FOREVER_S: Final = 1e9
PIECE: Final = 64  # records that an iteration takes out of the buffer at once


class Consumer(ConsumerFace, Generic[K, V]):
    """Reads topics as a member of a group, or partitions of its choice; `ConsumerOptions` has its settings."""

    def __init__(
        self,
        bootstrap: Bootstrap = "",
        *,
        group: str | None = None,
        topics: Sequence[str] = (),
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
        interceptors: Sequence[Interceptor] = (),
        key_deserializer: Callable[[bytes], K] | None = None,
        value_deserializer: Callable[[bytes], V] | None = None,
        **settings: Unpack[ConsumerOptions],
    ) -> None:
        """`settings` are Kafka's, with underscores (`auto_offset_reset="earliest"`); see `ConsumerOptions`."""
        self._prepare(bootstrap, group, settings)
        self._decoding = Decoding(self._go_back, interceptors, key_deserializer, value_deserializer)
        self._guard = SingleThread()
        self._engine = Engine(self._machine, "ixion-heartbeats", do_nothing, stands_in=False)
        self._made_in = os.getpid()
        self._lock = self._engine.lock
        if topics or pattern is not None:
            with self._undone_on_error():
                self.subscribe(topics, listener, pattern=pattern)

    # Made from aio/consumer.py by devtools.blocking, from here on …

    def __enter__(self) -> Consumer[K, V]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close. After an exception nothing is committed automatically: the last record may be the cause."""
        if kind is not None and not self._closed:
            self._machine.stop_committing()
        self.close()

    # What to read

    def subscribe(
        self,
        topics: Sequence[str] | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
    ) -> None:
        """Read these topics, or all whose whole names match `pattern`, with the other members of the group. Replaces
        the previous subscription."""
        with self._entered(), self._lock:
            self._subscribe(topics, listener, pattern)

    def unsubscribe(self) -> None:
        """Leave the group and give up all partitions. Commits nothing."""
        with self._entered():
            machine = self._machine
            try:
                duty = machine.last_duty()
                if duty is not None:
                    self._perform(duty)
            finally:
                with self._lock:
                    machine.leave(time.monotonic(), None)
                    try:
                        self._engine.wait(lambda: not machine.is_leaving, time.monotonic() + self._timeout_s)
                    finally:
                        machine.forget_group()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without a group. Those that were assigned before keep their positions."""
        with self._entered(), self._lock:
            self._machine.choose(partitions)
            self._stirred()

    # Records

    def poll(self, timeout_s: float = 0.0, max_records: int | None = None) -> list[ConsumerRecord[K, V]]:
        """Records that are fetched already, or arrive within `timeout_s`. Call it again and again (step 1)."""
        most = self._settings.max_poll_records if max_records is None else check_most(max_records)
        with self._entered():  # steps 2 and 17
            found = self._wait_for(timeout_s, lambda: self._machine.buffer.take(most))
            return self._decoding.apply(found)  # step 15

    def __iter__(self) -> Iterator[ConsumerRecord[K, V]]:
        """Records one by one, for ever; the position moves with each."""
        subscription, buffer = self._machine.subscription, self._machine.buffer
        is_plain = not self._decoding.is_needed
        while True:
            yield from self.poll(FOREVER_S, 1)
            left = self._settings.max_poll_records - 1
            while left > 0 and not self._is_woken:  # fetched records, without all of poll's steps
                with self._entered(), self._lock:
                    peeked = buffer.peek(min(PIECE, left))
                if peeked is None:
                    break
                state, records, epoch = peeked
                left -= len(records)
                changes = subscription.changes
                state.position_epoch = epoch
                handed = 0
                try:
                    for record in records:
                        handed += 1
                        state.position = record.offset + 1
                        if is_plain:
                            yield record
                        else:
                            yield from self._decoding.apply([record])
                        if subscription.changes != changes or self._is_over() or state.position != record.offset + 1:
                            break  # a seek, a pause, another assignment; or a poll has taken the next ones
                finally:
                    buffer.records += handed

    def batches(self, timeout_s: float = FOREVER_S) -> Iterator[ColumnBatch]:
        """Records as columns, batch by batch, until none arrives for `timeout_s`; the position moves with each."""
        while True:
            with self._entered():
                found = self._wait_for(timeout_s, self._next_columns)
            if not found:
                return
            yield from found

    # Positions

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to be returned."""
        with self._entered():
            machine = self._machine
            state = machine.subscription.of(partition)
            with self._lock:
                is_known = lambda: state.position is not None or self._is_woken or is_told(machine)  # noqa: E731
                self._engine.wait(is_known, time.monotonic() + self._timeout_s)
                if state.position is None:
                    self._check_wakeup()
                    machine.check()
            if state.position is None:
                raise machine.late_position(partition, self._timeout_s)
            return state.position

    def seek(self, partition: TopicPartition, offset: int) -> None:
        with self._entered(), self._lock:
            self._machine.seek(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        with self._entered(), self._lock:
            self._machine.reset(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        with self._entered(), self._lock:
            self._machine.reset(partitions, LATEST)

    # Offsets of brokers and of the group

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._list_offsets(dict.fromkeys(partitions, EARLIEST))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._list_offsets(dict.fromkeys(partitions, LATEST))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset with that time (milliseconds) or later; None if no record is that young."""
        found = self._list_offsets(times)
        return {place: offset if offset >= 0 else None for place, offset in found.items()}

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        timeout_s: float | None = None,
    ) -> None:
        """Commit the positions, or these offsets, and wait. CommitFailedError if the group has rebalanced without this
        member."""
        with self._entered():
            with self._lock:
                errand = self._machine.commit(offsets)
            self._await(errand, timeout_s)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit without waiting. `on_commit` is called with the offsets and the error, or None, within a later poll,
        commit or close. A retriable fault is not retried, because the retry could overtake a later commit."""
        with self._entered(), self._lock:
            self._machine.commit(offsets, retries=False, on_commit=on_commit or ignore_commit)
            self._send()

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        found = self.committed_metadata(partitions)
        return {place: None if each is None else each.offset for place, each in found.items()}

    def committed_metadata(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets with their metadata."""
        with self._entered():
            with self._lock:
                errand = self._machine.stored_offsets(partitions)
            self._await(errand)
            return {place: errand.found.get(place) for place in errand.places}

    def metrics(self) -> dict[str, int]:
        """Current counters and gauges, by Kafka's names."""
        with self._lock:
            return self._machine.metrics()

    @property
    def trouble(self) -> KafkaError | None:
        """Why no records arrive at the moment, if brokers are the reason."""
        with self._lock:
            return self._machine.trouble

    def close(self, timeout_s: float = 30.0, *, leave: bool | None = None) -> None:
        """Commit, if automatic commits are on, leave the group and close the connections. A second call does nothing.

        `leave` says whether the member leaves its group (KIP-1092). With None, a static member stays until its session
        ends.
        """
        self._engine.check()
        with self._guard:
            if self._closed:
                return
            try:
                self._part(time.monotonic() + timeout_s, leave)
            finally:
                self._closed = True
                with self._lock:
                    self._machine.close(time.monotonic())
                self._stop()
                self._tell()

    # Internals

    def _await(self, errand: Errand, timeout_s: float | None = None) -> None:
        """Wait until the errand is done; raises its fault."""
        within_s = self._timeout_s if timeout_s is None else timeout_s
        late = None
        with self._lock:
            try:
                is_over = lambda: errand.is_done or self._is_woken  # noqa: E731
                self._engine.wait(is_over, time.monotonic() + within_s)
            finally:
                if not errand.is_done:
                    late = errand.late(within_s)
                    self._machine.abandon(errand)
            if late is not None:
                self._check_wakeup()
                raise late
        self._tell()
        errand.check()

    def _list_offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        with self._entered():
            with self._lock:
                errand = self._machine.list_offsets(times)
            self._await(errand)
            return {place: errand.found[place][0] for place in times}

    def _part(self, until_s: float, leave: bool | None) -> None:
        """Do the last automatic commit, call the listener, and leave the group."""
        machine = self._machine
        try:
            with self._lock:
                machine.commit_automatically(time.monotonic(), latest=True)
                self._send()  # even if there is no time to wait for the answer
                self._engine.wait(lambda: not machine.is_committing, until_s)
            self._tell()
            duty = machine.last_duty()
            if duty is not None:
                self._perform(duty)
        finally:
            with self._lock:
                machine.leave(time.monotonic(), leave)
                self._send()
                self._engine.wait(lambda: not machine.is_leaving, until_s)

    def _has_news(self) -> bool:
        return self._is_woken or self._machine.has_news  # step 11.6

    def _is_over(self) -> bool:
        return self._is_woken or self._closed

    def _check_wakeup(self) -> None:
        if self._is_woken:
            self._is_woken = False
            raise WakeupError

    # … to here.

    def wakeup(self) -> None:
        """Interrupt the waiting call, or the next one that would wait, with WakeupError. From any thread or signal."""
        self._is_woken = True
        self._engine.ring()

    def _subscribe(
        self,
        topics: Sequence[str] | re.Pattern[str] | None,
        listener: RebalanceListener | None,
        pattern: str | re.Pattern[str] | None,
    ) -> None:
        self._machine.subscribe(topics, pattern, time.monotonic())
        self._listener = listener or RebalanceListener()
        self._engine.stands_in = True

    def _send(self) -> None:
        """Send now what waits to be sent."""
        self._engine.pump(time.monotonic())

    def _stop(self) -> None:
        self._engine.stop()

    def _let_go(self) -> None:
        self._engine.abandon()

    @contextmanager
    def _inside(self) -> Iterator[None]:
        with self._entered(), self._lock:
            yield

    def _entered(self) -> SingleThread:
        if self._closed:
            raise ConsumerClosedError
        return self._guard

    def _wait_for(self, timeout_s: float, take: Callable[[], list[T]]) -> list[T]:
        machine, engine = self._machine, self._engine
        self._check_listener()
        machine.check_poll(timeout_s)  # step 3
        now_s = time.monotonic()
        end_s = now_s + timeout_s
        with self._lock:
            machine.enter(now_s)
        try:
            while True:
                self._tell()
                with self._lock:
                    self._check_wakeup()  # step 4
                    now_s = time.monotonic()
                    duty = machine.next_duty(now_s)  # steps 5 and 12
                    if duty is None:
                        found = take()  # steps 6 and 7: what is here already
                        if not found or machine.is_due(now_s):
                            engine.pump(now_s)  # step 14: the next fetches are sent; or steps 8 to 11 without waiting
                        if not found and not machine.has_news and not engine.wait(self._has_news, end_s):
                            return []  # step 16
                        if not found and machine.buffer.has_next:
                            found = take()  # step 13
                            engine.pump(now_s)
                        if found:
                            return found
                        if not machine.buffer.has_next:
                            machine.check()  # step 11.12
                if duty is not None:
                    self._perform(duty)
                elif time.monotonic() >= end_s:
                    return []
        finally:
            with self._lock:
                machine.exit(time.monotonic())

    def _perform(self, duty: Duty) -> None:
        self._is_in_listener = True
        try:
            self._listener.hear(duty.kind, duty.places)
        finally:
            self._is_in_listener = False
            with self._lock:
                self._machine.done(duty)

    def _go_back(self, place: TopicPartition, offset: int) -> None:
        with self._lock:
            self._machine.seek(place, offset)


def do_nothing() -> None:
    """Callbacks run on the caller's thread only."""


def ignore_commit(offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None) -> None:
    """Does nothing: the caller gave no callback."""


def is_told(machine: ConsumerMachine) -> bool:
    return bool(machine.faults) or machine.client.denied is not None or machine.positions.fault() is not None
