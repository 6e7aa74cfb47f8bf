"""Writes to __consumer_offsets. One call is one batch, so all of its records count or none does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ixion.coordinators.group.records import Entry
from ixion.model.errors import ErrorCode
from ixion.records.builder import BatchBuilder
from ixion.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ixion.replica.coordinator_log import CoordinatorLog

# Told how it went, and the offset of the first record (-1 if nothing was written).
Written = Callable[[ErrorCode, int], None]

CHUNK_BYTES: Final = 500_000  # of a batch of tombstones, which may be written in several; a batch may have 1 MB


class Journal:
    def __init__(self, log: CoordinatorLog, clock_ms: Callable[[], int]) -> None:
        self._log = log
        self._clock_ms = clock_ms

    def write(
        self,
        partition: int,
        records: Sequence[Entry],
        done: Written,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
    ) -> None:
        """With a producer id the batch belongs to its transaction."""
        transactional = producer_id != NO_PRODUCER_ID
        builder = BatchBuilder(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0 if transactional else NO_SEQUENCE,
            is_transactional=transactional,
        )
        now_ms = self._clock_ms()
        for key, value in records:
            builder.append(key, value, timestamp=now_ms)
        count = len(records)

        def appended(code: ErrorCode, next_offset: int) -> None:
            done(code, next_offset - count if code is ErrorCode.NONE else -1)

        self._log.append(partition, builder.build(), appended)

    def write_tombstones(self, partition: int, records: Sequence[Entry], done: Callable[[ErrorCode], None]) -> None:
        """As many batches as it takes; each may count without the others. Says the first thing that went wrong."""
        chunks = list(_chunks(records))
        left = len(chunks)
        worst = ErrorCode.NONE

        def written(code: ErrorCode, _: int) -> None:
            nonlocal left, worst
            left -= 1
            if worst is ErrorCode.NONE:
                worst = code
            if left == 0:
                done(worst)

        if not chunks:
            done(ErrorCode.NONE)
        for chunk in chunks:
            self.write(partition, chunk, written)


def _chunks(records: Sequence[Entry]) -> list[list[Entry]]:
    chunks: list[list[Entry]] = []
    room = 0
    for record in records:
        room -= len(record[0]) + 32
        if room < 0:
            chunks.append([])
            room = CHUNK_BYTES
        chunks[-1].append(record)
    return chunks


# What the log's codes mean to members and committers, who know groups, not partitions.
GROUP_CODES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
COMMIT_CODES: Final = {
    **GROUP_CODES,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
