"""Fetches that are complete and not handed out yet, the half-read one among them (step 7 of the poll). No I/O.

`max_poll_records` may end in the middle of a fetch. Its iterator is kept, and the next call goes on with it:

    fetched: 0..9 of a, 0..4 of b     take(6): a 0..5     take(6): a 6..9, b 0..1     take(6): b 2..4

What is fetched of a paused partition waits here until it is resumed. A seek drops what is here of its partition. A
damaged batch raises when it is reached, not before what lies ahead of it has been handed out, and every time after.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ixion.clients.consumer.record import ConsumerRecord, take
from ixion.clients.consumer.subscription import Subscription
from ixion.clients.fetched import Fetched
from ixion.clients.metadata import TopicPartition
from ixion.model.errors import KafkaError
from ixion.records.columns import Columns
from ixion.records.record import Record


class Buffer:
    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self._waiting: deque[Fetched] = deque()
        self._half: Fetched | None = None  # the one that is half read, by one of the two below
        self._records: Iterator[Record] | None = None
        self._columns: Iterator[Columns] | None = None

    def add(self, fetched: Fetched) -> None:
        self._waiting.append(fetched)

    def drop(self, partition: TopicPartition) -> None:
        self._waiting = deque(fetched for fetched in self._waiting if fetched.partition != partition)
        if self._half is not None and self._half.partition == partition:
            self._forget_half()

    def next_offset(self, partition: TopicPartition) -> int | None:
        """Behind the last record that is here, None if none is."""
        ends = [fetched.next_offset for fetched in self._waiting if fetched.partition == partition]
        return max(ends, default=None)

    def take(self, most: int) -> list[ConsumerRecord]:
        """The next records, up to `most`; positions move behind them."""
        found: list[ConsumerRecord] = []
        while len(found) < most:
            fetched = self._next()
            if fetched is None:
                break
            place = fetched.partition
            if self._half is not fetched or self._records is None:
                self._begin(fetched)
            assert self._records is not None
            before = len(found)
            try:
                more = take(self._records, most - before, place.topic, place.partition, found)
            except KafkaError:
                self._forget_half()
                self._move(found, before, place)
                if found:
                    return found
                raise
            self._move(found, before, place)
            if not more:
                self._finish(fetched)
        return found

    def take_columns(self) -> tuple[TopicPartition, Columns] | None:
        """The next columns; the position moves behind them."""
        while (fetched := self._next()) is not None:
            if self._half is not fetched or self._columns is None:
                self._rewind(fetched)
                self._half, self._records, self._columns = fetched, None, fetched.columns()
            try:
                columns = next(self._columns, None)
            except KafkaError:
                self._forget_half()
                raise
            if columns is not None:
                self._subscription.move(fetched.partition, columns.offsets[len(columns) - 1] + 1)
                return fetched.partition, columns
            self._finish(fetched)
        return None

    def _next(self) -> Fetched | None:
        """The first whose partition is not paused. A half-read one is the first."""
        for fetched in self._waiting:
            if not self._subscription.is_paused(fetched.partition):
                return fetched
        return None

    def _begin(self, fetched: Fetched) -> None:
        self._rewind(fetched)
        self._half, self._records, self._columns = fetched, fetched.records(), None

    def _rewind(self, fetched: Fetched) -> None:
        """To the position: columns may have taken a part of it, or an error ended its iterator."""
        position = self._subscription.position(fetched.partition)
        assert position is not None, "a partition without a position is not fetched"
        fetched.offset = position

    def _move(self, found: list[ConsumerRecord], before: int, place: TopicPartition) -> None:
        if len(found) > before:
            self._subscription.move(place, found[-1].offset + 1)

    def _forget_half(self) -> None:
        self._half = self._records = self._columns = None

    def _finish(self, fetched: Fetched) -> None:
        self._waiting.remove(fetched)
        self._forget_half()
        self._subscription.move(fetched.partition, fetched.next_offset)
