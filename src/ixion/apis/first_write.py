"""Before records of a transaction are appended: which partitions must ask the coordinator, and what they are told.

A partition in which the producer's transaction is open has been asked about; only the first write goes by the
coordinator (`coordinators.txn.verification`). One request comes from one producer, so it is asked once.
"""

from __future__ import annotations

from collections.abc import Sequence

from ixion.coordinators.txn.coordinator import TransactionCoordinator
from ixion.coordinators.txn.verification import Verified
from ixion.model.errors import ErrorCode
from ixion.records.batch import BatchView
from ixion.records.layout import ATTRIBUTES, HEADER_SIZE, TRANSACTIONAL_BIT, Buffer
from ixion.replica.append import Entry
from ixion.replica.manager import ReplicaManager
from ixion.replica.partition import Key


def is_transactional(records: Buffer) -> bool:
    return len(records) >= HEADER_SIZE and records[ATTRIBUTES + 1] & TRANSACTIONAL_BIT != 0


def verify(
    transactions: TransactionCoordinator,
    replicas: ReplicaManager,
    transactional_id: str | None,
    entries: Sequence[Entry],
    version: int,
    done: Verified,
) -> None:
    """`done` is given a code for each partition that had to be asked about; all others may be written to."""
    first_writes: list[Key] = []
    producers: set[tuple[int, int]] = set()
    for topic, number, records in entries:
        if is_transactional(records):
            batch = BatchView(records)
            producer_id, epoch = int(batch.producer_id), int(batch.producer_epoch)
            producers.add((producer_id, epoch))
            if not is_open(replicas, (topic, number), producer_id, epoch):
                first_writes.append((topic, number))
    if len(producers) > 1:
        done(dict.fromkeys([(topic, number) for topic, number, _ in entries], ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    elif not transactional_id:
        # Whoever names no transactional id has no right to any; Kafka says it in these words.
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        done(dict.fromkeys([(topic, number) for topic, number, _ in entries], code))
    elif first_writes:
        ((producer_id, epoch),) = producers
        transactions.verify_produce(transactional_id, producer_id, epoch, first_writes, version, done)
    else:
        done({})


def is_open(replicas: ReplicaManager, key: Key, producer_id: int, epoch: int) -> bool:
    """Whether the producer has a transaction open there. A partition that is not here says so when appended to."""
    partition = replicas.partitions.get(key)
    if partition is None:
        return True
    entry = partition.log.producers.producers.get(producer_id)
    return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch
