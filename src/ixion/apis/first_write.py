"""Records of a transaction are appended: which partitions must ask the coordinator, and what they are told.

A partition in which the producer's transaction is open has been asked about; only the first write goes by the
coordinator (`coordinators.txn.verification`). One request comes from one producer, so it is asked once.

What the coordinator says holds for this turn of the loop: afterwards the transaction may be over. So when a request
with many partitions lets the loop have its turn, what is left of it is verified anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ixion.coordinators.txn.coordinator import TransactionCoordinator
from ixion.coordinators.txn.verification import Verified, produce_client
from ixion.log.prepare import Origin
from ixion.model.errors import ErrorCode
from ixion.records.batch import BatchView
from ixion.records.layout import ATTRIBUTES, HEADER_SIZE, TRANSACTIONAL_BIT, Buffer
from ixion.replica.append import Entry, GiveUp
from ixion.replica.append_result import AppendResult
from ixion.replica.manager import ReplicaManager
from ixion.replica.partition import Key
from ixion.timer.turns import Turn


def is_transactional(records: Buffer) -> bool:
    return len(records) >= HEADER_SIZE and records[ATTRIBUTES + 1] & TRANSACTIONAL_BIT != 0


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
    ) -> None:
        """`done` is called when every partition has its result; `waits` as by `replica.append`."""
        self._transactions = transactions
        self._replicas = replicas
        self._transactional_id = transactional_id
        self._version = version
        self._timeout_ms = timeout_ms
        self._acks = acks
        self._entries = entries
        self._done = done
        self._waits = waits
        self._open: list[GiveUp] = []  # of appends whose results are not known yet
        self._results = [AppendResult(topic, number) for topic, number, _ in entries]
        self._left = len(entries)

    def run(self, first: int = 0) -> None:
        rest = self._entries[first:]
        verify(
            self._transactions,
            self._replicas,
            self._transactional_id,
            rest,
            self._version,
            partial(self._append, first),
        )

    def _append(self, first: int, codes: dict[Key, ErrorCode]) -> None:
        turn = Turn()
        for place in range(first, len(self._entries)):
            if place > first and turn.is_over():
                self._replicas.soon(partial(self.run, place))
                return
            entry = self._entries[place]
            code = codes.get(entry[:2], ErrorCode.NONE)
            if code == ErrorCode.NONE:
                settled = partial(self._settled, place)
                self._replicas.append(self._timeout_ms, self._acks, Origin.CLIENT, [entry], settled, self._open.append)
            else:
                refused = self._results[place]
                refused.code = code
                self._settled(place, [refused])
        self._entries = ()  # what waits for acks=all must not keep the records
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
    transactional_id: str | None,
    entries: Sequence[Entry],
    version: int,
    done: Verified,
) -> None:
    """`done` is given a code for each partition that had to be asked about; all others may be written to.

    A producer may have several writes under way. If the first was refused a moment ago and comes again, those behind it
    must not overtake it. A producer that the partition knows is held to its sequence by the log. One that it does not
    know begins with 0 where transactions have epochs of their own; elsewhere with the lowest sequence that it has tried
    (its state here may have been forgotten, so that need not be 0).
    """
    adds = produce_client(version).adds
    first_writes: list[Key] = []
    overtaking: dict[Key, ErrorCode] = {}
    producers: set[tuple[int, int]] = set()
    for topic, number, records in entries:
        if is_transactional(records):
            batch = BatchView(records)
            producer_id, epoch = int(batch.producer_id), int(batch.producer_epoch)
            producers.add((producer_id, epoch))
            if not is_open(replicas, (topic, number), producer_id, epoch):
                overtakes = is_overtaking(replicas, (topic, number), batch, adds)
                if overtakes:
                    overtaking[topic, number] = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                if not overtakes or not adds:
                    first_writes.append((topic, number))
    if len(producers) > 1:
        done(dict.fromkeys([(topic, number) for topic, number, _ in entries], ErrorCode.INVALID_PRODUCER_ID_MAPPING))
    elif not transactional_id:
        # Whoever names no transactional id has no right to any; Kafka says it in these words.
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        done(dict.fromkeys([(topic, number) for topic, number, _ in entries], code))
    elif first_writes:
        ((producer_id, epoch),) = producers
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


def is_open(replicas: ReplicaManager, key: Key, producer_id: int, epoch: int) -> bool:
    """Whether the producer has a transaction open there. A partition that is not here says so when appended to."""
    partition = replicas.partitions.get(key)
    if partition is None:
        return True
    entry = partition.log.producers.producers.get(producer_id)
    return entry is not None and entry.txn_first_offset >= 0 and entry.epoch == epoch


def is_overtaking(replicas: ReplicaManager, key: Key, batch: BatchView, adds: bool) -> bool:
    """Whether an earlier write of a producer that is unknown there is still to come."""
    partition = replicas.partitions.get(key)
    sequence, producer_id = int(batch.base_sequence), int(batch.producer_id)
    if partition is None or sequence < 0 or producer_id in partition.log.producers.producers:
        return False
    if adds:
        return sequence > 0
    return sequence > partition.log.producers.lowest_offered(producer_id, int(batch.producer_epoch), sequence)
