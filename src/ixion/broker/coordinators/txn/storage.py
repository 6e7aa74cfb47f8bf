"""The records of `__transaction_state` in Kafka's format: key = transactional id, value = a snapshot, none = forgotten.

The topic is compacted, so the last record of an id is its whole state. Values are written in version 1, which also
holds what transaction.version 2 needs after a restart. Version 0 is read too, and written while the cluster is held at
transaction.version 0, for brokers that only know version 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ixion.broker.coordinators.txn.snapshot import NO_EPOCH, NO_PARTITIONS, Snapshot
from ixion.broker.coordinators.txn.states import State
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.flaws import UnsupportedVersionError
from ixion.language.protocol.storage import decode, decode_key, encode, encode_key, record_type
from ixion.language.protocol.stored.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.record import Record

TRANSACTION_RECORD: Final = 0  # the only type of key
PLAIN: Final = 0  # versions of the value
FLEXIBLE: Final = 1
UNSTORED: Final = frozenset({State.DEAD, State.PREPARE_EPOCH_FENCE})


def encode_snapshot(snapshot: Snapshot, value_version: int) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(snapshot.partitions):
        topics.setdefault(topic, []).append(partition)
    named = tuple(PartitionsSchema(topic=name, partition_ids=tuple(numbers)) for name, numbers in topics.items())
    flexible = value_version >= FLEXIBLE
    value = TransactionLogValue(
        producer_id=snapshot.producer_id,
        previous_producer_id=snapshot.previous_producer_id if flexible else -1,
        next_producer_id=snapshot.next_producer_id if flexible else -1,
        producer_epoch=snapshot.epoch,
        transaction_timeout_ms=snapshot.timeout_ms,
        transaction_status=int(snapshot.state),
        transaction_partitions=None if snapshot.state is State.EMPTY else named,
        transaction_last_update_timestamp_ms=snapshot.updated_ms,
        transaction_start_timestamp_ms=snapshot.started_ms,
        client_transaction_version=snapshot.client_version if flexible else 0,
    )
    return encode(value, value_version)


def decode_snapshot(data: bytes) -> Snapshot:
    """ValueError for a state that is never stored."""
    value = decode(TransactionLogValue, data)
    state = State(value.transaction_status)
    if state in UNSTORED:
        raise ValueError(f"state {state.label} is never stored")
    partitions: frozenset[TopicPartition] = NO_PARTITIONS
    if value.transaction_partitions:
        partitions = frozenset(
            (topic.topic, number) for topic in value.transaction_partitions for number in topic.partition_ids
        )
    return Snapshot(
        state=state,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        last_epoch=NO_EPOCH,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        partitions=partitions,
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def snapshot_batch(transactional_id: str, snapshot: Snapshot, value_version: int, now_ms: int) -> bytes:
    builder = BatchBuilder()
    builder.append(_key(transactional_id), encode_snapshot(snapshot, value_version), timestamp=now_ms)
    return builder.build()


def tombstone_batch(transactional_ids: Iterable[str], now_ms: int) -> bytes:
    builder = BatchBuilder()
    for transactional_id in transactional_ids:
        builder.append(_key(transactional_id), None, timestamp=now_ms)
    return builder.build()


def replay(record: Record, into: dict[str, Snapshot]) -> None:
    """Apply a record; later records replace earlier ones. Raises, and changes nothing, if it cannot be read."""
    key = record.key
    number = record_type(b"" if key is None else key)
    if number != TRANSACTION_RECORD or key is None:
        raise UnsupportedVersionError("record key", number)
    transactional_id = decode_key(TransactionLogKey, key).transactional_id
    value = record.value
    if value is None:
        into.pop(transactional_id, None)
    else:
        into[transactional_id] = decode_snapshot(value)


def _key(transactional_id: str) -> bytes:
    return encode_key(TRANSACTION_RECORD, TransactionLogKey(transactional_id=transactional_id))
