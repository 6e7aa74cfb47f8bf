"""Partitions of a transaction: added by a request, added by the first write, or verified before an old client's write.

Every partition that a transaction writes to is stored here before anything is written there. Otherwise its marker would
never reach the partition, and readers would wait for ever. Clients before transaction.version 2 add partitions with a
request of their own (AddPartitionsToTxn, AddOffsetsToTxn), and their first write to a partition is accepted only if
they did (KIP-890, part 1). Newer clients just write, and the write adds the partition (part 2).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ixion.broker.coordinators.txn.snapshot import NO_EPOCH, Snapshot
from ixion.broker.coordinators.txn.states import ENDING, SETTLED, State
from ixion.broker.coordinators.txn.transaction import Transaction
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition


def add_partitions(
    transaction: Transaction,
    producer_id: int,
    epoch: int,
    partitions: Collection[TopicPartition],
    now_ms: int,
    client_version: int,
) -> Snapshot | ErrorCode:
    """The snapshot to store; NONE if the transaction has all of them already."""
    refused = _refused(transaction, producer_id, epoch)
    if refused:
        return refused
    now = transaction.now
    if transaction.pending is not None or now.state in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if now.state is State.ONGOING and now.partitions.issuperset(partitions):
        return ErrorCode.NONE
    return replace(
        now,
        state=State.ONGOING,
        previous_producer_id=now.producer_id,
        partitions=now.partitions.union(partitions),
        started_ms=now_ms if now.state in SETTLED else now.started_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


def verify_partitions(
    transaction: Transaction, producer_id: int, epoch: int, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, ErrorCode]:
    """NONE for partitions of the open transaction, TRANSACTION_ABORTABLE for others."""
    code = _refused(transaction, producer_id, epoch)
    now = transaction.now
    if not code and now.state in ENDING:
        code = ErrorCode.CONCURRENT_TRANSACTIONS
    if code:
        return dict.fromkeys(partitions, code)
    return {
        partition: ErrorCode.NONE if partition in now.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def _refused(transaction: Transaction, producer_id: int, epoch: int) -> ErrorCode:
    now = transaction.now
    if now.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if now.epoch != epoch or epoch == NO_EPOCH:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE
