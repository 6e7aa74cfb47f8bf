"""How a transaction ends: by its producer (EndTxn), by its timeout, or because another producer takes over.

There are two steps, and each is stored before it takes effect. Prepare decides the outcome, which nothing can change
afterwards. Then the markers are written. Complete means that every partition has one.

Before transaction.version 2 the epoch stays the same from one transaction to the next. So an EndTxn that was delayed on
its way and arrives during a *later* transaction ends that one; for such clients nothing can prevent it. From version 2
on (EndTxn 5) every end raises the epoch, and the answer carries the new one (KIP-890):

    producer 7, epoch 3, ongoing    EndTxn(7, 3, commit)  ->  PrepareCommit with epoch 4, answer (7, 4)
    ... the answer is lost          EndTxn(7, 3, commit)  ->  a retry: (7, 4) again, nothing changes
    epoch 4, ongoing                EndTxn(7, 3, commit)  ->  delayed on its way: PRODUCER_FENCED, nothing changes

If an older client took over with epoch 4 and ended a transaction, the epoch stays 4. Then EndTxn(7, 3) is not a retry:
it comes from the producer that was replaced, and gets PRODUCER_FENCED.

What an EndTxn of version 2 gets when no transaction is ongoing (F: PRODUCER_FENCED, S: INVALID_TXN_STATE, same: the
previous answer, raise: an abort of an empty transaction, which raises the epoch):

                       abort, epoch - 1   abort, epoch   commit, epoch - 1   commit, epoch
    Empty              F                  raise          F                   S
    CompleteAbort      same               raise          F                   S
    CompleteCommit     S                  raise          same                S

A commit that arrives just after the coordinator aborted its transaction (F in the third column) gets PRODUCER_FENCED,
as in Kafka from KAFKA-20785 on; the earlier INVALID_TXN_STATE looked like a fault of the application.

The markers carry the raised epoch, so a write of the transaction that arrives after its marker is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ixion.broker.coordinators.txn.snapshot import (
    EPOCH_PER_TRANSACTION,
    LAST_EPOCH,
    MAX_EPOCH,
    NO_EPOCH,
    NO_PARTITIONS,
    NO_PRODUCER_ID,
    Snapshot,
)
from ixion.broker.coordinators.txn.states import ENDING, SETTLED, State
from ixion.broker.coordinators.txn.transaction import Transaction
from ixion.language.model.errors import ErrorCode


def end_transaction(
    transaction: Transaction,
    producer_id: int,
    epoch: int,
    commit: bool,
    client_version: int,
    now_ms: int,
    new_producer_id: Callable[[], int],
) -> Snapshot | ErrorCode:
    """The snapshot to store; NONE if this is a retry, whose answer is `transaction.now`."""
    if client_version >= EPOCH_PER_TRANSACTION:
        return _end_raising(transaction, producer_id, epoch, commit, now_ms, new_producer_id)
    return _end_keeping(transaction, producer_id, epoch, commit, now_ms)


def fence(transaction: Transaction, server_version: int, now_ms: int) -> Snapshot:
    """The ongoing transaction aborted by the coordinator, with an epoch that fences its producer.

    Under transaction.version 2 the previous epoch is kept as the last one: a producer that timed out may ask for the
    new epoch and continue, as long as no other producer took over.
    """
    now = transaction.now
    raising = server_version >= EPOCH_PER_TRANSACTION
    return _prepared(
        now,
        State.PREPARE_ABORT,
        now_ms,
        epoch=min(now.epoch + 1, MAX_EPOCH),
        last_epoch=now.epoch if raising else NO_EPOCH,
        client_version=server_version if raising else 0,
    )


def completed(now: Snapshot, now_ms: int) -> Snapshot:
    """The snapshot after Prepare, once every partition has its marker."""
    rotates = now.next_producer_id != NO_PRODUCER_ID
    return replace(
        now,
        state=State.COMPLETE_COMMIT if now.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT,
        producer_id=now.next_producer_id if rotates else now.producer_id,
        epoch=0 if rotates else now.epoch,
        previous_producer_id=now.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=NO_PARTITIONS,
        updated_ms=now_ms,
    )


def answered(now: Snapshot) -> tuple[int, int]:
    """Producer id and epoch of the client's next transaction."""
    if now.next_producer_id != NO_PRODUCER_ID:
        return now.next_producer_id, 0
    return now.producer_id, now.epoch


def _end_keeping(
    transaction: Transaction, producer_id: int, epoch: int, commit: bool, now_ms: int
) -> Snapshot | ErrorCode:
    now = transaction.now
    if now.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if now.epoch != epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if now.state is State.ONGOING:
        state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT
        return _prepared(now, state, now_ms, epoch=epoch, last_epoch=now.last_epoch, client_version=0)
    return _repeated(now.state, commit)


def _end_raising(
    transaction: Transaction,
    producer_id: int,
    epoch: int,
    commit: bool,
    now_ms: int,
    new_producer_id: Callable[[], int],
) -> Snapshot | ErrorCode:
    now = transaction.now
    rotated = producer_id == now.previous_producer_id != now.producer_id and epoch == LAST_EPOCH and now.epoch == 0
    # An older client keeps its epoch, so the previous epoch belongs to a producer that it replaced.
    repeats = rotated or (epoch == now.epoch - 1 and now.client_version >= EPOCH_PER_TRANSACTION)
    if now.producer_id != producer_id and not rotated:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if now.state in ENDING:
        fits = repeats
    elif now.state in SETTLED and now.state is not State.EMPTY:
        fits = repeats or epoch == now.epoch
    else:
        fits = epoch == now.epoch
    if not fits:
        return ErrorCode.PRODUCER_FENCED
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if now.state is State.ONGOING or (now.state in SETTLED and not repeats and not commit):
        return _prepared(
            now,
            State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
            now_ms,
            epoch=epoch + 1,
            last_epoch=epoch,
            client_version=EPOCH_PER_TRANSACTION,
            next_producer_id=new_producer_id() if now.epochs_used_up else NO_PRODUCER_ID,
        )
    if not repeats:
        return ErrorCode.INVALID_TXN_STATE
    if commit and now.state in (State.PREPARE_ABORT, State.COMPLETE_ABORT):
        return ErrorCode.PRODUCER_FENCED
    return _repeated(now.state, commit)


def _repeated(state: State, commit: bool) -> ErrorCode:
    """The answer to an EndTxn when no transaction is ongoing: NONE if the last one ended the same way."""
    if state is (State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT):
        return ErrorCode.NONE
    if state is (State.PREPARE_COMMIT if commit else State.PREPARE_ABORT):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.INVALID_TXN_STATE


def _prepared(
    now: Snapshot,
    state: State,
    now_ms: int,
    *,
    epoch: int,
    last_epoch: int,
    client_version: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> Snapshot:
    return replace(
        now,
        state=state,
        epoch=epoch,
        last_epoch=last_epoch,
        previous_producer_id=now.producer_id,
        next_producer_id=next_producer_id,
        started_ms=now.started_ms if now.state is State.ONGOING else now_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )
