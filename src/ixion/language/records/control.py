"""Control batches: the markers that end a transaction (KIP-98).

A control batch holds one record, which consumers do not see, or none after compaction. Its key is a version (i16) and a
type (i16); the value of a transaction marker is a version (i16) and the epoch of the coordinator that wrote it (i32).
Marker batches are transactional, carry the producer's id and epoch, and have no sequence.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.faults import invalid
from ixion.language.records.layout import NO_LEADER_EPOCH

KEY: Final = Struct(">hh")
MARKER: Final = Struct(">hi")


class ControlType(IntEnum):
    """The types of control records. Readers skip unknown types, so that newer brokers can add some."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


TYPES: Final = {int(kind): kind for kind in ControlType}


def control_type(batch: BatchView) -> ControlType:
    """The type of a control batch, from the key of its only record; KafkaError (INVALID_RECORD) if that has none.
    UNKNOWN for a batch without records, which Kafka's cleaner leaves of a marker."""
    if batch.count == 0:
        return ControlType.UNKNOWN
    return TYPES.get(KEY.unpack_from(control_key(batch))[1], ControlType.UNKNOWN)


def coordinator_epoch(batch: BatchView) -> int:
    """The epoch of the transaction coordinator that wrote this transaction marker."""
    for record in batch.records():
        value = record.value
        if value is not None and len(value) >= MARKER.size:
            epoch: int = MARKER.unpack_from(value)[1]
            return epoch
    raise invalid("a transaction marker without a coordinator epoch")


def control_key(batch: BatchView) -> bytes:
    for record in batch.records():
        key = record.key
        if key is not None and len(key) >= KEY.size and KEY.unpack_from(key)[0] >= 0:
            return key
    raise invalid("a control batch without a control key")


def transaction_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The batch that ends a transaction of this producer in one partition."""
    builder = BatchBuilder(
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    kind = ControlType.COMMIT if commit else ControlType.ABORT
    builder.append(KEY.pack(0, kind), MARKER.pack(0, coordinator_epoch), timestamp=timestamp)
    return builder.build()
