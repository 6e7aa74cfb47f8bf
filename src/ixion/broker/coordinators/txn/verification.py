"""Verifies the first write of a transaction to a partition (KIP-890).

A write that arrives after its transaction was aborted would open a transaction that no producer ends, and readers at
read_committed would wait behind it for ever. So the first transactional write of a producer to a partition is verified
with the coordinator:

- Older clients add the partition beforehand. If it is not in the open transaction the write is refused, with
  TRANSACTION_ABORTABLE if the client knows that code, else with INVALID_TXN_STATE.
- Clients of transaction.version 2 send no such request; their write adds the partition. If the previous transaction is
  still being completed, the write waits up to 100 ms instead of making the client retry.

**The rule for the caller**: write inside `done`, without a pause. Coordinator and partition run on one event loop, so
nothing, above all no marker, comes between the verification and a write that follows at once.

A code that older clients do not know is replaced by one on which they retry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ixion.broker.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.broker.coordinators.txn.coordinator import TransactionCoordinator

PAUSE_MS: Final = 20
PAUSES: Final = 5  # 100 ms in all, Kafka's add.partitions.to.txn.retry.backoff.max.ms

Verified = Callable[[dict[TopicPartition, ErrorCode]], None]

TRY_AGAIN: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


@dataclass(frozen=True, slots=True)
class Client:
    """What the version of a write says about its client."""

    adds: bool  # its write adds the partition
    knows_abortable: bool
    produces: bool  # Produce; else TxnOffsetCommit


def produce_client(version: int) -> Client:
    return Client(adds=version >= 12, knows_abortable=version >= 11, produces=True)


def offset_commit_client(version: int) -> Client:
    return Client(adds=version >= 5, knows_abortable=version >= 4, produces=False)


class Verification:
    def __init__(self, transactions: TransactionCoordinator, timer: Timer) -> None:
        self._transactions = transactions
        self._timer = timer
        self.pauses = PAUSES

    def verify(
        self,
        client: Client,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        done: Verified,
        paused: int = 0,
    ) -> None:
        def added(code: ErrorCode) -> None:
            if code == ErrorCode.CONCURRENT_TRANSACTIONS and paused < self.pauses:
                self._timer.call_later(
                    PAUSE_MS, self.verify, client, transactional_id, producer_id, epoch, partitions, done, paused + 1
                )
            else:
                done(dict.fromkeys(partitions, understood(client, code)))

        if client.adds:
            self._transactions.add_partitions(
                transactional_id, producer_id, epoch, partitions, EPOCH_PER_TRANSACTION, added
            )
        else:
            codes = self._transactions.verify_partitions(transactional_id, producer_id, epoch, partitions)
            done({partition: understood(client, code) for partition, code in codes.items()})


def understood(client: Client, code: ErrorCode) -> ErrorCode:
    """The code that this client understands."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH  # it asks for a new epoch, and learns whether it is fenced
    if code == ErrorCode.TRANSACTION_ABORTABLE and not client.knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    if client.produces and (code in TRY_AGAIN or (code == ErrorCode.CONCURRENT_TRANSACTIONS and not client.adds)):
        return ErrorCode.NOT_ENOUGH_REPLICAS  # every client retries it, without a metadata refresh
    return code
