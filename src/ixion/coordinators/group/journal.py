"""Writes to __consumer_offsets. A `write` is one batch, so all of its records count or none does."""

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

PIECE_BYTES: Final = 500_000  # of what may be written in several batches; a batch may have 1 MB


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

    def write_in_pieces(self, partition: int, records: Sequence[Entry], done: Callable[[ErrorCode], None]) -> None:
        """As many batches as it takes; each may count without the others. Says the first thing that went wrong."""
        pieces = _pieces(records)
        left = len(pieces)
        worst = ErrorCode.NONE

        def written(code: ErrorCode, _: int) -> None:
            nonlocal left, worst
            left -= 1
            if worst is ErrorCode.NONE:
                worst = code
            if left == 0:
                done(worst)

        if not pieces:
            done(ErrorCode.NONE)
        for piece in pieces:
            self.write(partition, piece, written)


def _pieces(records: Sequence[Entry]) -> list[list[Entry]]:
    pieces: list[list[Entry]] = []
    room = 0
    for record in records:
        key, value = record
        size = len(key) + len(value or b"") + 32
        room -= size
        if room < 0:
            pieces.append([])
            room = PIECE_BYTES - size
        pieces[-1].append(record)
    return pieces


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
HEARTBEAT_CODES: Final = {**GROUP_CODES, ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE}
COMMIT_CODES: Final = {
    **HEARTBEAT_CODES,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
