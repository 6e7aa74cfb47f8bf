"""Fetches that are complete and not returned yet, with the half-read one (step 7 of the poll). No I/O.

`max_poll_records` may end in the middle of a fetch. Its iterator is kept, and the next call continues with it:

    fetched: 0..9 of a, 0..4 of b     take(6): a 0..5     take(6): a 6..9, b 0..1     take(6): b 2..4

Fetches of a paused partition wait here until it is resumed. A seek drops the fetches of its partition. A damaged batch
raises when it is reached, after everything before it has been returned, and at every call after that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from ixion._native import i64
from ixion.clients.consumer.record import ConsumerRecord, take
from ixion.clients.core.consumer.subscription import NO_EPOCH, Assigned, Subscription
from ixion.clients.fetched import Fetched
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError
from ixion.language.records.columns import Columns
from ixion.language.records.record import Record


class Peeked(NamedTuple):
    """Records of one partition. The caller moves `state.position` past each record that it returns, and counts them."""

    state: Assigned
    records: list[ConsumerRecord]
    epoch: int  # of each of them, if they are all of one


class Buffer:
    def __init__(self, subscription: Subscription) -> None:
        self.bytes: i64 = 0  # of all buffered fetches
        self.records = 0  # returned so far
        self.finished = 0  # fetches that were read to their ends
        self._subscription = subscription
        self._waiting: deque[Fetched] = deque()
        self._half: Fetched | None = None  # the one that is half read, by one of the two below
        self._records: Iterator[Record] | None = None
        self._columns: Iterator[Columns] | None = None
        self._reached: i64 = 0  # what `_records` gives next, if the position is still there

    def add(self, fetched: Fetched) -> None:
        self._waiting.append(fetched)
        self.bytes += fetched.size_in_bytes
        state = self._subscription.assigned[fetched.partition]
        state.fetches += 1
        state.buffered_bytes += fetched.size_in_bytes
        state.fetch_offset = fetched.next_offset
        state.fetch_epoch = fetched.last_epoch

    def drop(self, partition: TopicPartition) -> None:
        dropped = [fetched for fetched in self._waiting if fetched.partition == partition]
        if not dropped:
            return
        self._waiting = deque([fetched for fetched in self._waiting if fetched.partition != partition])
        for fetched in dropped:
            self.bytes -= fetched.size_in_bytes
        state = self._subscription.assigned.get(partition)
        if state is not None:
            state.fetches = 0
            state.buffered_bytes = 0
        if self._half is not None and self._half.partition == partition:
            self._forget_half()

    @property
    def has_next(self) -> bool:
        """Whether `take` has something to look at."""
        return self._next() is not None

    def next_offset(self, partition: TopicPartition) -> int | None:
        """The offset after the last buffered record; None if there is none."""
        state = self._subscription.assigned.get(partition)
        return state.fetch_offset if state is not None and state.fetches else None

    def take(self, most: int) -> list[ConsumerRecord]:
        """The next records, up to `most`; positions move past them."""
        found: list[ConsumerRecord] = []
        while len(found) < most:
            fetched = self._next()
            if fetched is None:
                break
            place = fetched.partition
            records = self._records_of(fetched)
            before = len(found)
            try:
                more = take(records, most - before, place.topic, place.partition, found)
            except KafkaError:
                self._forget_half()
                self._move(found, before, fetched)
                if found:
                    break
                raise
            self._move(found, before, fetched)
            if not more:
                self._finish(fetched)
        self.records += len(found)
        return found

    def peek(self, most: int) -> Peeked | None:
        """The next records of one fetch, up to `most`, for a caller that returns them one by one. The next call of any
        kind returns the rest again, because the position is not past it."""
        while (fetched := self._next()) is not None:
            place = fetched.partition
            found: list[ConsumerRecord] = []
            records = self._records_of(fetched)
            try:
                take(records, most, place.topic, place.partition, found)
            except KafkaError:
                self._forget_half()
                if not found:
                    raise
            if found:
                self._reached = found[-1].offset + 1
                return Peeked(self._subscription.assigned[place], found, fetched.only_epoch)
            self._finish(fetched)
        return None

    def take_columns(self) -> tuple[TopicPartition, Columns] | None:
        """The next columns; the position moves past them."""
        while (fetched := self._next()) is not None:
            if self._half is not fetched or self._columns is None:
                self._rewind(fetched)
                self._half, self._records, self._columns = fetched, None, fetched.columns()
            assert self._columns is not None
            try:
                columns = next(self._columns, None)
            except KafkaError:
                self._forget_half()
                raise
            if columns is not None:
                position = columns.offsets[len(columns) - 1] + 1
                self._subscription.move(fetched.partition, position, fetched.only_epoch)
                self.records += len(columns)
                return fetched.partition, columns
            self._finish(fetched)
        return None

    def take_fetches(self) -> list[Fetched]:
        """All buffered fetches; positions move past them."""
        found: list[Fetched] = []
        while (fetched := self._next()) is not None:
            found.append(fetched)
            self._finish(fetched)
        return found

    def _next(self) -> Fetched | None:
        """The first whose partition is neither paused nor being revoked. A half-read one is the first."""
        assigned = self._subscription.assigned
        for fetched in self._waiting:
            if not assigned[fetched.partition].is_held:
                return fetched
        return None

    def _records_of(self, fetched: Fetched) -> Iterator[Record]:
        """The records from the position on: the half-read iterator, unless the position has changed."""
        records = self._records
        if (
            self._half is fetched
            and records is not None
            and self._subscription.position(fetched.partition) == self._reached
        ):
            return records
        self._rewind(fetched)
        records = fetched.records()
        self._half, self._records, self._columns = fetched, records, None
        self._reached = fetched.offset
        return records

    def _rewind(self, fetched: Fetched) -> None:
        """Rewind to the position: columns may have taken a part, or an error ended the iterator."""
        position = self._subscription.position(fetched.partition)
        assert position is not None, "a partition without a position is not fetched"
        fetched.offset = position

    def _move(self, found: list[ConsumerRecord], before: int, fetched: Fetched) -> None:
        if len(found) > before:
            self._reached = found[-1].offset + 1
            self._subscription.move(fetched.partition, int(self._reached), fetched.only_epoch)

    def _forget_half(self) -> None:
        self._half = None
        self._records = None
        self._columns = None

    def _finish(self, fetched: Fetched) -> None:
        self._waiting.remove(fetched)
        self._forget_half()
        self.finished += 1
        self.bytes -= fetched.size_in_bytes
        state = self._subscription.assigned[fetched.partition]
        state.fetches -= 1
        state.buffered_bytes -= fetched.size_in_bytes
        position = state.position
        if position is None or position < fetched.next_offset:
            self._subscription.move(fetched.partition, fetched.next_offset, fetched.last_epoch)
        elif state.position_epoch == NO_EPOCH:
            state.position_epoch = fetched.last_epoch
