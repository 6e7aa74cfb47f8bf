"""Appends records of a transaction, after the coordinator has verified the partitions that need it.

Only the first write of a transaction to a partition is verified (`coordinators.txn.verification`): if the transaction
is open in the partition, it was verified before. All records of a request come from one producer.

A verification is valid for this turn of the loop: afterwards the transaction may have ended. So a request with very
many partitions is verified and appended chunk by chunk. Only partitions that the client adds by writing are added all
at once, because each addition stores all partitions of the transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ixion.broker.coordinators.txn.coordinator import TransactionCoordinator
from ixion.broker.coordinators.txn.verification import Verified, produce_client
from ixion.broker.log.prepare import Origin
from ixion.broker.replica.append import NONE_CHECKED, Entry, GiveUp
from ixion.broker.replica.checking import Checked
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.results import AppendResult
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.batch import BatchView
from ixion.language.records.layout import is_transactional
from ixion.timer.turns import Steps, Turn

logger = logging.getLogger(__name__)

STEP: Final = 128  # entries verified together, some 300 µs


class TransactionalAppend:
    """The records of one request, from verification to their results."""

    def __init__(
        self,
        transactions: TransactionCoordinator,
        replicas: ReplicaManager,
        transactional_id: str | None,
        version: int,
        timeout_ms: int,
        acks: int,
        entries: Sequence[Entry],
        done: Callable[[list[AppendResult]], None],
        waits: Callable[[GiveUp], None],
        checked: Checked = NONE_CHECKED,
    ) -> None:
        """`done` is called when every partition has its result; `waits` and `checked` as in `replica.append`."""
        self._transactions = transactions
        self._replicas = replicas
        self._transactional_id = transactional_id
        self._version = version
        self._timeout_ms = timeout_ms
        self._acks = acks
        self._entries = entries
        self._done = done
        self._waits = waits
        self._checked = checked
        self._open: list[GiveUp] = []  # appends without a result yet
        self._results: list[AppendResult] = []
        self._left = len(entries)
        self._adds = produce_client(version).adds
        self._scanned = 0  # entries scanned so far
        self._producers: set[tuple[int, int]] = set()
        self._first_writes: list[TopicPartition] = []
        self._refused: dict[TopicPartition, ErrorCode] = {}

    def run(self) -> None:
        if self._scan_some():
            self._replicas.append_lane.run(self._scan(), self._decide)
        else:
            self._decide(None, None)

    # First scan all entries: which producer, and which partitions a newer client adds, in one change.

    def _scan(self) -> Steps[None]:
        while self._scan_some():
            yield

    def _scan_some(self) -> bool:
        """Scan the next entries. True if there are more."""
        for topic, number, records in self._entries[self._scanned : self._scanned + STEP]:
            self._results.append(AppendResult(topic, number))
            if is_transactional(records):
                batch = BatchView(records)
                producer_id, epoch = int(batch.producer_id), int(batch.producer_epoch)
                self._producers.add((producer_id, epoch))
                key = (topic, number)
                if (
                    self._adds
                    and not is_open(self._replicas, key, producer_id, epoch)
                    and not is_overtaking(self._replicas, key, batch, self._adds)
                ):
                    self._first_writes.append(key)
        self._scanned += STEP
        return self._scanned < len(self._entries)

    def _decide(self, _: None, error: Exception | None) -> None:
        if error is not None:
            logger.error("a transactional append failed", exc_info=error)
            self._refuse_from(0, ErrorCode.UNKNOWN_SERVER_ERROR)
        elif len(self._producers) > 1:
            self._refuse_from(0, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        elif not self._transactional_id:
            # Without a transactional id the client has no right to the transaction; this is Kafka's code.
            self._refuse_from(0, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        elif self._first_writes and len(self._entries) > STEP:
            ((producer_id, epoch),) = self._producers
            self._transactions.verify_produce(
                self._transactional_id, producer_id, epoch, self._first_writes, self._version, self._added
            )
        else:
            self._go_on(0)

    def _added(self, codes: dict[TopicPartition, ErrorCode]) -> None:
        self._refused = {key: code for key, code in codes.items() if code != ErrorCode.NONE}
        self._go_on(0)

    # Then verify a chunk and append it in the same turn.

    def _go_on(self, first: int) -> None:
        chunk = self._entries[first : first + STEP]
        if self._refused:
            chunk = [entry for entry in chunk if entry[:2] not in self._refused]
        assert self._transactional_id is not None
        verify(
            self._transactions,
            self._replicas,
            self._transactional_id,
            chunk,
            self._version,
            partial(self._append, first, min(first + STEP, len(self._entries))),
        )

    def _append(self, first: int, end: int, codes: dict[TopicPartition, ErrorCode]) -> None:
        turn = Turn()
        for place in range(first, end):
            if place > first and turn.is_over():
                end = place
                break
            entry = self._entries[place]
            key = entry[:2]
            code = codes.get(key, ErrorCode.NONE) or self._refused.get(key, ErrorCode.NONE)
            if code == ErrorCode.NONE:
                settled = partial(self._settled, place)
                self._replicas.append(
                    self._timeout_ms,
                    self._acks,
                    Origin.CLIENT,
                    [entry],
                    settled,
                    self._open.append,
                    self._checked,
                )
            else:
                self._refuse(place, code)
        if end < len(self._entries):
            self._replicas.append_lane.run(self._step(end), partial(self._stepped, end), at_once=False)
        else:
            self._all_appended()

    def _step(self, first: int) -> Steps[None]:
        yield
        self._go_on(first)

    def _stepped(self, first: int, _: None, error: Exception | None) -> None:
        if error is not None:
            logger.error("a transactional append failed", exc_info=error)
            self._refuse_from(first, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _refuse_from(self, first: int, code: ErrorCode) -> None:
        count = len(self._entries)
        while len(self._results) < count:
            self._results.append(AppendResult(*self._entries[len(self._results)][:2]))
        for place in range(first, count):
            self._refuse(place, code)
        self._all_appended()

    def _refuse(self, place: int, code: ErrorCode) -> None:
        refused = self._results[place]
        refused.code = code
        self._settled(place, [refused])

    def _all_appended(self) -> None:
        self._entries = ()  # do not keep the records while waiting for acks=all
        self._checked = NONE_CHECKED
        if self._left:
            self._waits(self._give_up)

    def _give_up(self) -> None:
        for give_up in self._open:
            give_up()

    def _settled(self, place: int, results: list[AppendResult]) -> None:
        (self._results[place],) = results
        self._left -= 1
        if self._left == 0:
            self._done(self._results)


def verify(
    transactions: TransactionCoordinator,
    replicas: ReplicaManager,
    transactional_id: str,
    entries: Sequence[Entry],
    version: int,
    done: Verified,
) -> None:
    """`done` gets a code for each partition that had to be verified; the others may be written to.

    The records come from one producer, which may have several writes in flight. If the first was refused and is
    retried, later ones must not overtake it. If the partition knows the producer, the log checks its sequence. An
    unknown producer must begin with sequence 0 if every transaction has its own epoch; otherwise with the lowest
    sequence that it has tried, which need not be 0, because the partition may have dropped its state.
    """
    adds = produce_client(version).adds
    first_writes: list[TopicPartition] = []
    overtaking: dict[TopicPartition, ErrorCode] = {}
    producer_id = epoch = -1
    for topic, number, records in entries:
        if is_transactional(records):
            batch = BatchView(records)
            producer_id, epoch = int(batch.producer_id), int(batch.producer_epoch)
            if not is_open(replicas, (topic, number), producer_id, epoch):
                overtakes = is_overtaking(replicas, (topic, number), batch, adds)
                if overtakes:
                    overtaking[topic, number] = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                if not overtakes or not adds:
                    first_writes.append((topic, number))
    if first_writes:
        transactions.verify_produce(
            transactional_id,
            producer_id,
            epoch,
            first_writes,
            version,
            lambda codes: done(overtaking | {key: code or overtaking.get(key, code) for key, code in codes.items()}),
        )
    else:
        done(overtaking)


def is_open(replicas: ReplicaManager, key: TopicPartition, producer_id: int, epoch: int) -> bool:
    """Whether the producer has an open transaction in the partition. If the partition is not here, the append fails."""
    partition = replicas.partitions.get(key)
    if partition is None:
        return True
    entry = partition.log.producers.producers.get(producer_id)
    return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch


def is_overtaking(replicas: ReplicaManager, key: TopicPartition, batch: BatchView, adds: bool) -> bool:
    """Whether an earlier write of a producer that the partition does not know is still to come."""
    partition = replicas.partitions.get(key)
    sequence, producer_id = int(batch.base_sequence), int(batch.producer_id)
    if partition is None or sequence < 0 or producer_id in partition.log.producers.producers:
        return False
    if adds:
        return sequence > 0
    return sequence > partition.log.producers.lowest_offered(producer_id, int(batch.producer_epoch), sequence)
