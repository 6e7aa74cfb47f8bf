"""InitProducerId with a transactional id: which producer id and epoch the client gets.

Without producer id and epoch in the request, a new instance of the application takes over: the epoch is raised, and the
previous producer is fenced. With both (KIP-360), the present producer continues after an error:

    request epoch = current epoch        raised by one; the old one is remembered as last
    request epoch = last epoch           the answer to the line above was lost: the same answer again, nothing changes
    anything else                        another producer took over meanwhile: PRODUCER_FENCED

Epochs have 16 bits. At 32766 the id gets a new producer id with epoch 0; a producer that missed that answer is
recognised by its old producer id.

On `FENCE` the caller aborts the ongoing transaction first, and calls again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Final

from ixion.broker.coordinators.txn.snapshot import (
    LAST_EPOCH,
    MAX_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    NO_TIME,
    Snapshot,
)
from ixion.broker.coordinators.txn.states import ENDING, State
from ixion.broker.coordinators.txn.transaction import Transaction
from ixion.language.model.errors import ErrorCode


class Fence(Enum):
    """The type of `FENCE`: a transaction is ongoing and must be aborted first."""

    FENCE = 1


FENCE: Final = Fence.FENCE


def start_producer(
    transaction: Transaction,
    timeout_ms: int,
    producer_id: int,
    epoch: int,
    now_ms: int,
    new_producer_id: Callable[[], int],
) -> Snapshot | ErrorCode | Fence:
    """The snapshot to store, or the code to answer. `producer_id` and `epoch` are -1 if the request has none."""
    now = transaction.now
    goes_on = epoch != NO_EPOCH
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if goes_on and not _is_known(now, producer_id, epoch):
        return ErrorCode.PRODUCER_FENCED
    if now.state in ENDING:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if now.state is State.ONGOING:
        return FENCE
    # Epoch 32767 comes from fencing 32766; no producer gets it.
    if now.epochs_used_up and (not goes_on or epoch == now.epoch or now.epoch == MAX_EPOCH):
        if goes_on and epoch not in (now.epoch, now.last_epoch):
            return ErrorCode.PRODUCER_FENCED
        return _empty(now, new_producer_id(), 0, epoch if goes_on else NO_EPOCH, timeout_ms, now_ms)
    if not goes_on:
        return _empty(now, now.producer_id, now.epoch + 1, NO_EPOCH, timeout_ms, now_ms)
    if epoch == now.epoch or now.epoch == NO_EPOCH:
        return _empty(now, now.producer_id, now.epoch + 1, now.epoch, timeout_ms, now_ms)
    if epoch == now.last_epoch:
        return _empty(now, now.producer_id, now.epoch, now.last_epoch, timeout_ms, now_ms)
    return ErrorCode.PRODUCER_FENCED


def _is_known(now: Snapshot, producer_id: int, epoch: int) -> bool:
    """It is the present producer, or the first, or one that missed the answer with its new producer id."""
    return (
        now.epoch == NO_EPOCH
        or producer_id == now.producer_id
        or (producer_id == now.previous_producer_id and epoch >= LAST_EPOCH)
    )


def _empty(now: Snapshot, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Snapshot:
    return replace(
        now,
        state=State.EMPTY,
        producer_id=producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        previous_producer_id=now.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        timeout_ms=timeout_ms,
        partitions=NO_PARTITIONS,
        started_ms=NO_TIME,
        updated_ms=now_ms,
    )
