"""The state of a transactional id at one moment; one record of `__transaction_state` holds one snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ixion.broker.coordinators.txn.states import State
from ixion.language.model.topic_partition import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
MAX_EPOCH: Final = 2**15 - 1
# The last epoch that a client may use: one more is reserved, so that this client can be fenced.
LAST_EPOCH: Final = MAX_EPOCH - 1

NO_PARTITIONS: Final[frozenset[TopicPartition]] = frozenset()

# Levels of the feature transaction.version. From 2 on every transaction ends with a new epoch (KIP-890).
EPOCH_PER_TRANSACTION: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    state: State
    producer_id: int
    epoch: int  # -1 until InitProducerId has been answered for the first time
    # The previous epoch, if the same client moved from it to this one; -1 if another client took over. A client that
    # retries with it has missed an answer and gets the same one again. Not stored, as in Kafka.
    last_epoch: int
    previous_producer_id: int  # before the latest change
    next_producer_id: int  # replaces a producer id without epochs left once the markers are written; or -1
    timeout_ms: int
    partitions: frozenset[TopicPartition]
    started_ms: int  # of the transaction that is open, or was open last; -1 before the first
    updated_ms: int
    client_version: int  # of the client that began or ended the transaction: 0 or 2

    @property
    def epochs_used_up(self) -> bool:
        return self.epoch >= LAST_EPOCH


def created(producer_id: int, timeout_ms: int, now_ms: int) -> Snapshot:
    """A transactional id that no client has used before."""
    return Snapshot(
        state=State.EMPTY,
        producer_id=producer_id,
        epoch=NO_EPOCH,
        last_epoch=NO_EPOCH,
        previous_producer_id=NO_PRODUCER_ID,
        next_producer_id=NO_PRODUCER_ID,
        timeout_ms=timeout_ms,
        partitions=NO_PARTITIONS,
        started_ms=NO_TIME,
        updated_ms=now_ms,
        client_version=0,
    )
