"""The transactional ids that this broker coordinates: in memory, and in the `__transaction_state` partitions it leads.

A partition that this broker begins to lead is read from beginning to end (`coordinators.loader`). Until then its ids
answer COORDINATOR_LOAD_IN_PROGRESS, or COORDINATOR_NOT_AVAILABLE if it cannot be read. A partition that is led
elsewhere answers NOT_COORDINATOR, and its changes under way end: an append that is acknowledged later has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getsizeof
from typing import Final

from ixion.broker.coordinators.loader import STEP, Loader
from ixion.broker.coordinators.log_codes import COORDINATOR_CODES
from ixion.broker.coordinators.txn.snapshot import NO_EPOCH, Snapshot
from ixion.broker.coordinators.txn.states import ENDING, State
from ixion.broker.coordinators.txn.storage import FLEXIBLE, PLAIN, replay, snapshot_batch, tombstone_batch
from ixion.broker.coordinators.txn.transaction import Transaction
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.language.model.errors import ErrorCode
from ixion.language.records.batch import BatchView
from ixion.language.records.record import Record
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

Stored = Callable[[ErrorCode], None]
Finish = Callable[["TransactionShard", Transaction], None]


ID_BYTES: Final = 600  # of a transactional id in memory, beside its characters


def id_bytes(transactional_id: str) -> int:
    return ID_BYTES + getsizeof(transactional_id)


class TransactionShard:
    """One led partition of the topic."""

    __slots__ = ("epoch", "failed", "ids_bytes", "loaded", "number", "ongoing", "transactions")

    def __init__(self, number: int, epoch: int) -> None:
        self.number: Final = number
        self.epoch: Final = epoch  # its leader epoch, which markers carry as the coordinator epoch
        self.loaded = False
        self.failed = False  # the log cannot be read; loading is tried again
        self.transactions: dict[str, Transaction] = {}
        self.ids_bytes = 0  # of `transactions`
        self.ongoing: dict[str, Transaction] = {}  # ids with an open transaction: few, however many ids there are

    def note(self, transaction: Transaction) -> None:
        """Update `ongoing` after the state of a transaction has changed."""
        if transaction.now.state is State.ONGOING:
            self.ongoing[transaction.transactional_id] = transaction
        else:
            self.ongoing.pop(transaction.transactional_id, None)


class TransactionStore:
    def __init__(
        self, log: CoordinatorLog, timer: Timer, clock_ms: Callable[[], int], version: Callable[[], int]
    ) -> None:
        """`version` is the level of transaction.version that the cluster runs at."""
        self._log = log
        self._clock_ms = clock_ms
        self._version = version
        self.shards: dict[int, TransactionShard] = {}
        self.loader = Loader(log, timer)

    def shard_of(self, transactional_id: str) -> TransactionShard | ErrorCode:
        shard = self.shards.get(self._log.partition_for(transactional_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.loaded:
            return shard
        return ErrorCode.COORDINATOR_NOT_AVAILABLE if shard.failed else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def find(self, transactional_id: str) -> Transaction | ErrorCode:
        """INVALID_PRODUCER_ID_MAPPING if no client ever used the id."""
        shard = self.shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard
        return shard.transactions.get(transactional_id) or ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def count(self) -> int:
        """How many transactional ids are remembered, in all shards."""
        return sum(len(shard.transactions) for shard in self.shards.values())

    def ids_bytes(self) -> int:
        return sum(shard.ids_bytes for shard in self.shards.values())

    def holds(self, shard: TransactionShard) -> bool:
        return self.shards.get(shard.number) is shard

    def put(self, shard: TransactionShard, transaction: Transaction, after: Snapshot, done: Stored) -> None:
        """Store a change, then apply it. A change that cannot be stored has no effect."""
        transaction.prepare(after)
        now_ms = self._clock_ms()
        value_version = FLEXIBLE if self._version() > 0 else PLAIN
        batch = snapshot_batch(transaction.transactional_id, after, value_version, now_ms)

        def appended(code: ErrorCode, _: int) -> None:
            if not self.holds(shard):
                done(ErrorCode.NOT_COORDINATOR)
            elif code == ErrorCode.NONE:
                transaction.complete()
                shard.note(transaction)
                done(code)
            else:
                transaction.give_up()
                if transaction.now.epoch == NO_EPOCH:
                    del shard.transactions[transaction.transactional_id]
                    shard.ids_bytes -= id_bytes(transaction.transactional_id)
                done(COORDINATOR_CODES.get(code, code))

        self._log.append(shard.number, batch, appended)

    def all(self) -> list[Transaction]:
        return [each for shard in self.shards.values() for each in shard.transactions.values()]

    def forget(self, shard: TransactionShard, transactions: list[Transaction]) -> None:
        """Store tombstones for ids that are prepared to be dead, then drop them."""

        def appended(code: ErrorCode, _: int) -> None:
            for transaction in transactions:
                if code == ErrorCode.NONE:
                    if shard.transactions.pop(transaction.transactional_id, None) is not None:
                        shard.ids_bytes -= id_bytes(transaction.transactional_id)
                else:
                    transaction.give_up()

        batch = tombstone_batch([each.transactional_id for each in transactions], self._clock_ms())
        self._log.append(shard.number, batch, appended)

    def load(self, number: int, epoch: int, finish: Finish) -> None:
        """`finish` is called, in turns of the loop, for every transaction whose outcome is stored but not complete."""
        shard = self.shards[number] = TransactionShard(number, epoch)
        self.loader.load(ShardLoad(self, shard, finish))

    def drop(self, number: int) -> None:
        self.shards.pop(number, None)
        self.loader.forget(number)


class ShardLoad:
    """What the loader needs of a shard."""

    def __init__(self, store: TransactionStore, shard: TransactionShard, finish: Finish) -> None:
        self._store = store
        self._shard = shard
        self._finish = finish
        self._found: dict[str, Snapshot] = {}

    @property
    def partition(self) -> int:
        return self._shard.number

    def is_wanted(self) -> bool:
        return self._store.holds(self._shard)

    def begin(self) -> None:
        self._shard.failed = False
        self._found.clear()

    def control(self, _batch: BatchView) -> None:
        """The log of this topic has no control batches."""

    def replay(self, _batch: BatchView, record: Record) -> None:
        replay(record, self._found)

    def finish(self) -> Steps[None]:
        shard, found = self._shard, self._found
        transactions: dict[str, Transaction] = {}
        unfinished: list[Transaction] = []
        shard.ongoing.clear()
        while found:
            key, snapshot = found.popitem()
            transaction = transactions[key] = Transaction(key, snapshot)
            shard.note(transaction)
            if snapshot.state in ENDING:
                unfinished.append(transaction)
            if len(found) % STEP == 0 and found:
                yield
        shard.transactions = transactions
        shard.ids_bytes = sum(map(id_bytes, transactions))
        shard.loaded = True
        for transaction in unfinished:
            try:
                self._finish(shard, transaction)
            except Exception as error:
                self._store.loader.skip(shard.number, f"the end of {transaction.transactional_id!r}", error)
            if transaction is not unfinished[-1]:
                yield

    def fail(self) -> None:
        self._shard.failed = True
