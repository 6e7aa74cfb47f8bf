"""Writes to __consumer_offsets. A write is one batch, so either all of its records are in the log or none."""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ixion.broker.coordinators.group.records import Entry
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.language.model.errors import ErrorCode
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

LEAST_OFFSET_BYTES: Final = 43  # of the record of a committed offset: a group and a topic of one letter, no metadata

# Called with the code and the offset of the first record (-1 if nothing was written).
Written = Callable[[ErrorCode, int], None]


class Journal:
    def __init__(self, log: CoordinatorLog, clock_ms: Callable[[], int]) -> None:
        self._log = log
        self._clock_ms = clock_ms

    def has_room_for(self, partition: int, offsets: int) -> bool:
        """Whether this many offsets fit into one batch, checked before it is built."""
        return offsets * LEAST_OFFSET_BYTES <= self._log.largest_batch(partition)

    def write(
        self,
        partition: int,
        records: Sequence[Entry],
        done: Written,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> None:
        """Write one record, or a client's offsets. With a producer id the batch belongs to its transaction."""
        transactional = producer_id != NO_PRODUCER_ID
        builder = BatchBuilder(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0 if transactional else NO_SEQUENCE,
            is_transactional=transactional,
        )
        self._append(partition, records, done, builder)

    def write_change(self, partition: int, records: Sequence[Entry], done: Callable[[ErrorCode], None]) -> None:
        """Write a change of a group as one batch of any size: a crash leaves all of it in the log, or nothing.

        A group of ten thousand members has targets of more than max.message.bytes. (Kafka refuses such a change, so
        that the group cannot move on.) Only a change that does not fit into a segment is refused here.
        """
        if records:
            self._append(partition, records, lambda code, _: done(code), BatchBuilder(), whole=True)
        else:
            done(ErrorCode.NONE)

    def end(self, partition: int) -> int:
        return self._log.end(partition)

    def is_replicated(self, partition: int, end: int) -> bool:
        return self._log.is_replicated(partition, end)

    def draft(self, partition: int) -> Draft:
        return Draft(self._log, partition, self._clock_ms())

    def _append(
        self, partition: int, records: Sequence[Entry], done: Written, builder: BatchBuilder, *, whole: bool = False
    ) -> None:
        now_ms = self._clock_ms()
        for key, value in records:
            builder.append(key, value, timestamp=now_ms)
        count = len(records)

        def appended(code: ErrorCode, next_offset: int) -> None:
            done(code, next_offset - count if code is ErrorCode.NONE else -1)

        self._log.append(partition, builder.build(), appended, whole=whole)


class Draft:
    """A change of a group that is encoded one record at a time, and then written as one batch."""

    def __init__(self, log: CoordinatorLog, partition: int, now_ms: int) -> None:
        self._log = log
        self._partition = partition
        self._now_ms = now_ms
        self._builder = BatchBuilder()

    def add(self, record: Entry) -> None:
        self._builder.append(record[0], record[1], timestamp=self._now_ms)

    def write(self, done: Callable[[ErrorCode], None]) -> None:
        """Call this only with at least one record."""
        self._log.append(self._partition, self._builder.build(), lambda code, _: done(code), whole=True)
