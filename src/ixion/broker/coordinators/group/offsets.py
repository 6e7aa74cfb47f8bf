"""The offsets of a group: committed ones, and those that wait for the end of a transaction.

An offset that is committed in a transaction is pending under its producer until the marker comes. Of two commits of one
partition, the one that is later in the log counts, not the one that became visible last:

    record 10   producer 7 commits offset 500 in a transaction    pending
    record 11   the consumer commits offset 600                   committed: 600
    record 12   the transaction of producer 7 commits             stays 600, because 11 > 10

Compaction keeps record 11 and drops 10, and a restart must load the same offset.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ixion.language.model.topic_partition import TopicPartition

NO_EXPIRY: Final = -1
NO_OFFSET: Final = -1  # what a fetch answers for a partition without a committed offset


class Committed(NamedTuple):
    offset: int
    leader_epoch: int  # of the last record read, -1 if the client did not say
    metadata: str
    commit_ms: int
    expire_ms: int  # only set by old clients, which may ask for their own retention
    record_offset: int  # of the record in __consumer_offsets


class GroupOffsets:
    __slots__ = ("committed", "pending")

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, Committed] = {}
        self.pending: dict[int, dict[TopicPartition, Committed]] = {}  # by producer id

    def put(self, partition: TopicPartition, value: Committed) -> None:
        self.committed[partition] = value

    def put_pending(self, producer_id: int, partition: TopicPartition, value: Committed) -> None:
        self.pending.setdefault(producer_id, {})[partition] = value

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        ended = self.pending.pop(producer_id, None)
        if ended is None or not committed:
            return
        for partition, value in ended.items():
            known = self.committed.get(partition)
            if known is None or value.record_offset > known.record_offset:
                self.committed[partition] = value

    def remove(self, partition: TopicPartition) -> None:
        """Forget the partition and its pending offsets."""
        self.committed.pop(partition, None)
        for producer_id, pending in list(self.pending.items()):
            pending.pop(partition, None)
            if not pending:
                del self.pending[producer_id]

    def is_pending(self, partition: TopicPartition) -> bool:
        return any(partition in pending for pending in self.pending.values())

    def knows(self, partition: TopicPartition) -> bool:
        return partition in self.committed or self.is_pending(partition)

    def is_committed_before(self, partition: TopicPartition, end_ms: int) -> bool:
        """Whether all its offsets, pending ones too, were committed by then."""
        known = self.committed.get(partition)
        values = [known] if known is not None else []
        values += [pending[partition] for pending in self.pending.values() if partition in pending]
        return all(value.commit_ms <= end_ms for value in values)

    def partitions(self) -> Iterator[TopicPartition]:
        """Every partition once, committed or pending."""
        yield from self.committed
        seen: set[TopicPartition] = set()
        for pending in self.pending.values():
            for partition in pending:
                if partition not in self.committed and partition not in seen:
                    seen.add(partition)
                    yield partition

    @property
    def is_empty(self) -> bool:
        return not self.committed and not self.pending
