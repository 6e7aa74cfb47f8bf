"""The state of one producer in a partition: its epoch, its last five batches, its open transaction."""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion._native import mypyc_attr

NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1
MAX_SEQUENCE: Final = (1 << 31) - 1

# A producer may have five requests in flight, and any response may be lost, so we recognise five batches.
BATCHES_KEPT: Final = 5


@mypyc_attr(acyclic=True)
class BatchTrace:
    """Sequences and offsets of one appended batch. Sequence numbers wrap from 2**31 - 1 to 0."""

    __slots__ = ("last_offset", "last_sequence", "offset_delta", "timestamp")

    def __init__(self, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int) -> None:
        self.last_sequence: Final = last_sequence
        self.last_offset: Final = last_offset
        self.offset_delta: Final = offset_delta
        self.timestamp: Final = timestamp

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class ProducerEntry:
    __slots__ = (
        "abort_offset",
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "txn_first_offset",
        "used_ms",
    )

    def __init__(self, producer_id: int, epoch: int = NO_EPOCH) -> None:
        self.producer_id: Final = producer_id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1  # of its last batch, as the producer chose it
        self.used_ms = -1  # when its last batch was appended, by the broker's clock
        self.txn_first_offset = NO_OFFSET  # of the open transaction; -1 if none is open
        self.abort_offset = NO_OFFSET  # of the last abort marker
        self.batches: list[BatchTrace] = []  # the oldest first

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def copy(self) -> ProducerEntry:
        twin = ProducerEntry(self.producer_id, self.epoch)
        twin.coordinator_epoch = self.coordinator_epoch
        twin.last_timestamp = self.last_timestamp
        twin.used_ms = self.used_ms
        twin.txn_first_offset = self.txn_first_offset
        twin.abort_offset = self.abort_offset
        twin.batches = list(self.batches)
        return twin

    def move_to_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch

    def add(self, epoch: int, trace: BatchTrace) -> None:
        self.move_to_epoch(epoch)
        if len(self.batches) == BATCHES_KEPT:
            del self.batches[0]
        self.batches.append(trace)
        self.last_timestamp = trace.timestamp

    def find(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchTrace | None:
        """The kept batch with exactly these sequence numbers, of which the new one is a duplicate.

        A batch of an aborted transaction has no duplicates (see `Draft._check_sequence`).
        """
        if epoch == self.epoch:
            for trace in self.batches:
                if trace.last_sequence == last_sequence and trace.first_sequence == first_sequence:
                    return trace if trace.last_offset > self.abort_offset else None
        return None
