"""The transaction coordinator: applies the rules, stores the decision, answers, and has the markers written.

    EndTxn ──> ending.end_transaction ──> PrepareCommit stored ──┬──> answered
                                                                 └──> markers written ──> CompleteCommit stored

Answers go to callbacks, each called once, perhaps before the method returns. Everything runs on the event loop. Each
method runs to its first append without a break, so no request sees a half-made change of another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

from ixion.broker.coordinators.loader import Loader
from ixion.broker.coordinators.txn.adding import add_partitions, verify_partitions
from ixion.broker.coordinators.txn.ending import answered, completed, end_transaction, fence
from ixion.broker.coordinators.txn.expiration import Expiration
from ixion.broker.coordinators.txn.markers import Marker, MarkerWriter
from ixion.broker.coordinators.txn.producer_ids import ProducerIds
from ixion.broker.coordinators.txn.sending import RETRY_MS, MarkerSender
from ixion.broker.coordinators.txn.snapshot import EPOCH_PER_TRANSACTION, NO_EPOCH, NO_PRODUCER_ID, Snapshot, created
from ixion.broker.coordinators.txn.starting import FENCE, start_producer
from ixion.broker.coordinators.txn.states import SETTLED, State
from ixion.broker.coordinators.txn.store import TransactionShard, TransactionStore, id_bytes
from ixion.broker.coordinators.txn.transaction import Transaction
from ixion.broker.coordinators.txn.verification import (
    Client,
    Verification,
    Verified,
    offset_commit_client,
    produce_client,
)
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.config.dynamic import DynamicConfig
from ixion.config.transaction_settings import TRANSACTION_MAX_TIMEOUT_MS, TRANSACTION_PARTITION_VERIFICATION_ENABLE
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.timer import Timer
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.coordinators.txn.remote_verification import RemoteVerification

# Transactional ids that one broker remembers. A new one beyond gets COORDINATOR_NOT_AVAILABLE, on which clients try
# again: ids expire after transactional.id.expiration.ms. (Kafka sets no bound.)
MOST_IDS: Final = 100_000
MOST_IDS_BYTES: Final = 128 << 20  # of the ids, which may have 32,767 characters, and what belongs to each

Answered = Callable[[ErrorCode], None]
Identified = Callable[[ErrorCode, int, int], None]  # code, producer id, epoch; -1, -1 with an error


class TransactionCoordinator:
    def __init__(
        self,
        log: CoordinatorLog,
        *,
        producer_ids: ProducerIds,
        markers: MarkerWriter,
        exists: Callable[[TopicPartition], bool],
        version: Callable[[], int],
        timer: Timer,
        clock_ms: Callable[[], int],
        config: DynamicConfig,
        spread_markers: MarkerWriter | None = None,
        elsewhere: RemoteVerification | None = None,
    ) -> None:
        """`exists` says whether the cluster has a partition; `version` is the present level of transaction.version.

        `markers` writes to partitions that are led here. With other brokers, `spread_markers` writes to all partitions,
        and `elsewhere` asks coordinators on other brokers.
        """
        self.log = log
        self._ids = producer_ids
        self.markers = markers
        self._sender = MarkerSender(spread_markers or markers, timer, exists)
        self._elsewhere = elsewhere
        self._version = version
        self._timer = timer
        self._clock_ms = clock_ms
        self._config = config
        self._store = TransactionStore(log, timer, clock_ms, version)
        self._verification = Verification(self, timer)
        self.expiration = Expiration(self._store, self._abort, timer=timer, clock_ms=clock_ms, config=config)

    # Life.

    @property
    def loader(self) -> Loader:
        return self._store.loader

    def start(self) -> None:
        self.expiration.start()

    def stop(self) -> None:
        self.expiration.stop()
        self._store.shards.clear()

    def on_elected(self, partition: int, leader_epoch: int) -> None:
        self._store.load(partition, leader_epoch, self._send_markers)

    def on_resigned(self, partition: int) -> None:
        self._store.drop(partition)

    # Requests.

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout_ms: int,
        producer_id: int,
        epoch: int,
        done: Identified,
    ) -> None:
        """`producer_id` and `epoch` are those of a producer that continues after an error (KIP-360), or -1."""
        if (producer_id == NO_PRODUCER_ID) != (epoch == NO_EPOCH) or transactional_id == "":
            done(ErrorCode.INVALID_REQUEST, NO_PRODUCER_ID, NO_EPOCH)
        elif not self._ids.ready:
            self._ids.wait(
                lambda code: (
                    done(code, NO_PRODUCER_ID, NO_EPOCH)
                    if code
                    else self.init_producer_id(transactional_id, timeout_ms, producer_id, epoch, done)
                )
            )
        elif transactional_id is None:
            done(ErrorCode.NONE, self._ids.take(), 0)
        elif not 0 < timeout_ms <= self._config.current[TRANSACTION_MAX_TIMEOUT_MS]:
            done(ErrorCode.INVALID_TRANSACTION_TIMEOUT, NO_PRODUCER_ID, NO_EPOCH)
        else:
            self._start_producer(transactional_id, timeout_ms, producer_id, epoch, done)

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        client_version: int,
        done: Answered,
    ) -> None:
        found = self._find(transactional_id)
        if isinstance(found, ErrorCode):
            done(found)
            return
        shard, transaction = found
        verdict = add_partitions(transaction, producer_id, epoch, partitions, self._clock_ms(), client_version)
        if isinstance(verdict, ErrorCode):
            done(verdict)
        else:
            self._store.put(shard, transaction, verdict, done)

    def verify_partitions(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """NONE for partitions of the open transaction, TRANSACTION_ABORTABLE for others. Changes nothing."""
        found = self._find(transactional_id)
        if isinstance(found, ErrorCode):
            return dict.fromkeys(partitions, found)
        return verify_partitions(found[1], producer_id, epoch, partitions)

    def verify_produce(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        version: int,
        done: Verified,
    ) -> None:
        """Called once per Produce request, for the partitions in which the producer has no open transaction.

        `done` gets a code per partition; records of partitions with NONE must be appended inside `done`.
        """
        client = produce_client(version)
        if client.adds or self._config.current[TRANSACTION_PARTITION_VERIFICATION_ENABLE]:
            self._verify(client, transactional_id, producer_id, epoch, partitions, done)
        else:
            done(dict.fromkeys(partitions, ErrorCode.NONE))

    def verify_offset_commit(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partition: TopicPartition,
        version: int,
        done: Answered,
    ) -> None:
        """Called by TxnOffsetCommit for the group's partition of `__consumer_offsets`."""
        client = offset_commit_client(version)
        if client.adds or self._config.current[TRANSACTION_PARTITION_VERIFICATION_ENABLE]:
            self._verify(
                client, transactional_id, producer_id, epoch, [partition], lambda codes: done(codes[partition])
            )
        else:
            done(ErrorCode.NONE)

    def _verify(
        self,
        client: Client,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        done: Verified,
    ) -> None:
        broker = -1 if self._elsewhere is None else self._elsewhere.coordinator_of(transactional_id)
        if self._elsewhere is not None and broker >= 0:
            self._elsewhere.verify(broker, client, transactional_id, producer_id, epoch, partitions, done)
        else:
            self._verification.verify(client, transactional_id, producer_id, epoch, partitions, done)

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        commit: bool,
        client_version: int,
        done: Identified,
    ) -> None:
        """Answers with the producer id and epoch of the next transaction."""
        found = self._find(transactional_id)
        if isinstance(found, ErrorCode):
            done(found, NO_PRODUCER_ID, NO_EPOCH)
            return
        shard, transaction = found
        try:
            verdict = end_transaction(
                transaction, producer_id, epoch, commit, client_version, self._clock_ms(), self._ids.take
            )
        except KafkaError as error:  # no producer id is available
            verdict = error.code
        if not isinstance(verdict, ErrorCode):
            self._end(shard, transaction, verdict, done)
        elif verdict:
            done(verdict, NO_PRODUCER_ID, NO_EPOCH)
        else:
            done(verdict, *answered(transaction.now))

    def describe(self, transactional_id: str) -> Snapshot | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        found = self._store.find(transactional_id)
        if isinstance(found, Transaction):
            return found.now
        return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if found == ErrorCode.INVALID_PRODUCER_ID_MAPPING else found

    def list(self) -> list[Transaction] | ErrorCode:
        """Every transactional id that this broker coordinates."""
        if not all(shard.loaded or shard.failed for shard in self._store.shards.values()):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self._store.all()

    def count_states(self) -> Steps[Mapping[str, int]]:
        """How many ids are in each state."""
        found: Counter[str] = Counter()
        for transaction in self._store.all():
            found[transaction.now.state.name.lower()] += 1
            yield
        return found

    # Internals.

    def _find(self, transactional_id: str) -> tuple[TransactionShard, Transaction] | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        shard = self._store.shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard
        transaction = shard.transactions.get(transactional_id)
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING if transaction is None else (shard, transaction)

    def _start_producer(
        self, transactional_id: str, timeout_ms: int, producer_id: int, epoch: int, done: Identified
    ) -> None:
        shard = self._store.shard_of(transactional_id)
        if isinstance(shard, ErrorCode):
            done(shard, NO_PRODUCER_ID, NO_EPOCH)
            return
        now_ms = self._clock_ms()
        transaction = shard.transactions.get(transactional_id)
        if transaction is None:
            size = id_bytes(transactional_id)
            if self._store.count() >= MOST_IDS or self._store.ids_bytes() + size > MOST_IDS_BYTES:
                done(ErrorCode.COORDINATOR_NOT_AVAILABLE, NO_PRODUCER_ID, NO_EPOCH)
                return
            transaction = Transaction(transactional_id, created(self._ids.take(), timeout_ms, now_ms))
            shard.transactions[transactional_id] = transaction
            shard.ids_bytes += size
        try:
            verdict = start_producer(transaction, timeout_ms, producer_id, epoch, now_ms, self._ids.take)
        except KafkaError as error:
            verdict = error.code
        if isinstance(verdict, ErrorCode):
            done(verdict, NO_PRODUCER_ID, NO_EPOCH)
        elif verdict is FENCE:
            fenced = transaction

            def then(code: ErrorCode, _id: int, _epoch: int) -> None:
                # Usually the markers are written by now, so the producer can start without a retry.
                if not code and fenced.now.state in SETTLED and not fenced.pending:
                    self._start_producer(transactional_id, timeout_ms, producer_id, epoch, done)
                else:
                    done(code or ErrorCode.CONCURRENT_TRANSACTIONS, NO_PRODUCER_ID, NO_EPOCH)

            self._end(shard, transaction, fence(transaction, self._version(), now_ms), then)
        else:
            after = verdict
            self._store.put(
                shard,
                transaction,
                after,
                lambda code: (
                    done(code, NO_PRODUCER_ID, NO_EPOCH) if code else done(code, after.producer_id, after.epoch)
                ),
            )

    def _end(self, shard: TransactionShard, transaction: Transaction, after: Snapshot, done: Identified) -> None:
        """Stores the outcome, starts sending the markers, and answers.

        The answer does not wait for the markers. If all partitions have one replica, the markers are written before the
        answer is sent, so a client that gets the answer can read what it committed.
        """

        def stored(code: ErrorCode) -> None:
            if code:
                done(code, NO_PRODUCER_ID, NO_EPOCH)
            else:
                self._send_markers(shard, transaction)
                done(code, *answered(after))

        self._store.put(shard, transaction, after, stored)

    def _abort(self, shard: TransactionShard, transaction: Transaction) -> None:
        self._end(shard, transaction, fence(transaction, self._version(), self._clock_ms()), lambda *_: None)

    def _send_markers(self, shard: TransactionShard, transaction: Transaction) -> None:
        now = transaction.now
        marker = Marker(
            producer_id=now.producer_id,
            epoch=now.epoch,
            commit=now.state is State.PREPARE_COMMIT,
            coordinator_epoch=shard.epoch,
            partitions=now.partitions,
            raised=now.client_version >= EPOCH_PER_TRANSACTION,
        )
        self._sender.send(marker, lambda: self._store.holds(shard), lambda: self._complete(shard, transaction))

    def _complete(self, shard: TransactionShard, transaction: Transaction) -> None:
        if not self._store.holds(shard):
            return

        def stored(code: ErrorCode) -> None:
            if code == ErrorCode.NOT_COORDINATOR:
                return
            if code:
                self._timer.call_later(RETRY_MS, self._complete, shard, transaction)

        self._store.put(shard, transaction, completed(transaction.now, self._clock_ms()), stored)
