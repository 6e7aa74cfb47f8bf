"""Producer state of a partition, for idempotent producers and transactions.

Idempotence. A producer numbers its records; a batch must begin where its last one ended. A batch that is among the last
five is a duplicate, and the response has its first offset. Sequence 2**31 - 1 is followed by 0. A new epoch begins with
sequence 0; a batch with an older epoch is refused. An unknown producer (its records were deleted, or it was idle for
producer.id.expiration.ms) may begin with any sequence, but with none above one that it has tried before: if batch 0 was
refused with a retriable error and batch 1 were accepted, the retry of batch 0 would be out of order for ever.

A producer is idle since the broker appended its last batch. (Kafka counts from the timestamps of its records: a
producer that loads old records expires while it is active, and a batch that it repeats is appended twice.) A batch that
is read from the log, after a crash, counts as appended now: its true time is not known.

Transactions. The first transactional batch of a producer opens a transaction, a marker ends it. The first offset of the
earliest open one is the first unstable offset: a reader at read_committed reads only below it. A transaction that has
ended still counts until the high watermark has passed its marker.

    offset   0      10      20       30            40
             A-1    B-1     B-2      B aborts      A commits       first unstable offset: 0 until the high watermark
             |______________________________________|              is above 40, then none; the aborted list of B is
                    |________________|                             written with "last stable offset 0"

An append checks its batches against a `Draft`, a copy of the state, writes the bytes, and then applies the draft. So a
refused or failed append changes nothing. Not thread-safe: the log that owns it holds its lock.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion.broker.log.producer_entry import (
    MAX_SEQUENCE,
    NO_EPOCH,
    NO_OFFSET,
    NO_SEQUENCE,
    BatchTrace,
    ProducerEntry,
)
from ixion.language.model.errors import ErrorCode, KafkaError

# Any client can invent producer ids, and each is kept until producer.id.expiration.ms is over. Beyond this many in a
# partition, the one that was idle longest is dropped. (Kafka sets no bound.)
MOST_PRODUCERS: Final = 100_000
CROWDED: Final = MOST_PRODUCERS // 2  # from here on `producers` is kept in the order of last use
LOOKED_AT: Final = 1_000  # producers with open transactions to skip in search of one to drop
MOST_OFFERED: Final = 1_000  # unknown producers whose lowest sequence is kept; a client can invent any number of ids


class OpenTxn:
    __slots__ = ("first_offset", "last_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: int) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = NO_OFFSET  # of its marker, once it has ended


class EndedTxn:
    __slots__ = ("aborted", "first_offset", "last_offset", "last_stable_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: int, last_offset: int, aborted: bool) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.aborted = aborted
        self.last_stable_offset = NO_OFFSET


class Draft:
    """The state of one producer after the batches that are being appended."""

    __slots__ = ("checked", "entry", "in_sequence", "known_epoch", "known_sequence", "raised_marker", "started")

    def __init__(self, entry: ProducerEntry, checked: bool) -> None:
        """`checked`: check epochs and sequences. A follower does not: the leader has accepted the batches."""
        self.entry = entry
        self.checked = checked
        self.in_sequence = checked  # False for a coordinator, which does not know the producer's sequence
        self.raised_marker = False  # the marker's epoch is above the epoch of its transaction
        self.known_epoch = entry.epoch
        self.known_sequence = entry.last_sequence
        self.started: list[OpenTxn] = []

    def add_data(
        self,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        transactional: bool,
    ) -> None:
        entry = self.entry
        if self.checked:
            self._check_epoch(epoch, first_offset)
        if self.in_sequence:
            self._check_sequence(epoch, first_sequence, first_offset)
        if self.checked and entry.txn_first_offset >= 0 and not transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {entry.producer_id} wrote a non-transactional batch at offset {first_offset} while its "
                "transaction is open",
            )
        entry.add(epoch, BatchTrace(last_sequence, last_offset, last_offset - first_offset, timestamp))
        if transactional and entry.txn_first_offset < 0:
            entry.txn_first_offset = first_offset
            self.started.append(OpenTxn(entry.producer_id, first_offset))

    def add_marker(
        self, epoch: int, coordinator_epoch: int, commit: bool, offset: int, timestamp: int
    ) -> EndedTxn | None:
        """A marker ends the open transaction; if none is open, it only raises the epoch.

        With transaction.version 2 every transaction has its own epoch. There a marker with the epoch of the open
        transaction is a late or repeated marker of the transaction before, and is refused. If none is open, it is
        harmless.
        """
        entry = self.entry
        if self.checked:
            self._check_epoch(epoch, offset)
            if self.raised_marker and epoch == entry.epoch and entry.txn_first_offset >= 0:
                raise KafkaError(
                    ErrorCode.INVALID_PRODUCER_EPOCH,
                    f"marker for producer {entry.producer_id} at offset {offset} has epoch {epoch}, which is the epoch "
                    f"of the transaction open since offset {entry.txn_first_offset}",
                )
            if coordinator_epoch < entry.coordinator_epoch:
                raise KafkaError(
                    ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                    f"marker for producer {entry.producer_id} at offset {offset} is from coordinator epoch "
                    f"{coordinator_epoch}; the current one is {entry.coordinator_epoch}",
                )
        ended = None
        if entry.txn_first_offset >= 0:
            ended = EndedTxn(entry.producer_id, entry.txn_first_offset, offset, not commit)
        entry.move_to_epoch(epoch)
        if not commit:
            entry.abort_offset = offset
        entry.txn_first_offset = NO_OFFSET
        entry.coordinator_epoch = max(coordinator_epoch, entry.coordinator_epoch)
        entry.last_timestamp = timestamp
        return ended

    def _check_epoch(self, epoch: int, offset: int) -> None:
        if epoch < self.entry.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {self.entry.producer_id} wrote at offset {offset} with epoch {epoch}; "
                f"the current one is {self.entry.epoch}",
            )

    def _check_sequence(self, epoch: int, first_sequence: int, offset: int) -> None:
        entry = self.entry
        if epoch != entry.epoch:
            if first_sequence != 0 and entry.epoch != NO_EPOCH:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {entry.producer_id} began epoch {epoch} at offset {offset} with sequence "
                    f"{first_sequence}, expected 0",
                )
            return
        if entry.batches:
            last = entry.last_sequence
        elif epoch == self.known_epoch:
            last = self.known_sequence
        else:
            last = NO_SEQUENCE
        follows = first_sequence == last + 1 or (first_sequence == 0 and last == MAX_SEQUENCE)
        if not follows and first_sequence <= last and entry.last_offset < entry.abort_offset:
            # librdkafka loses the answer to a batch, aborts the transaction, and takes the same sequences for the next
            # one. Apache Kafka answers as to a duplicate, with offsets that were aborted, and the records are lost.
            # After this error clients abort and go on with the next epoch. (OUT_OF_ORDER… is fatal for librdkafka.)
            raise KafkaError(
                ErrorCode.UNKNOWN_PRODUCER_ID,
                f"producer {entry.producer_id} wrote sequence {first_sequence} at offset {offset} again; "
                f"its batches up to sequence {last} were aborted",
            )
        if self.known_epoch != NO_EPOCH and not follows:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {entry.producer_id} wrote sequence {first_sequence} at offset {offset}; "
                f"its last one was {last}",
            )


class ProducerState:
    __slots__ = ("_ended", "_offered", "_open", "end_offset", "producers")

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self.end_offset = 0  # the state covers the log below it
        self._open: dict[int, OpenTxn] = {}  # by first offset, ascending
        self._ended: dict[int, OpenTxn] = {}  # ended, but the marker is not below the high watermark yet
        self._offered: dict[int, tuple[int, int]] = {}  # by producer id: epoch, lowest sequence; see lowest_offered

    def find_duplicate(
        self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int
    ) -> BatchTrace | None:
        entry = self.producers.get(producer_id)
        return None if entry is None else entry.find(epoch, first_sequence, last_sequence)

    def lowest_offered(self, producer_id: int, epoch: int, sequence: int) -> int:
        """The lowest sequence with which an unknown producer has tried to begin its epoch, including this attempt.

        Dropped once a batch of the producer is in the log.
        """
        known = self._offered.get(producer_id)
        if known is not None and epoch <= known[0]:
            if epoch < known[0] or sequence >= known[1]:
                return known[1]
        elif known is None and len(self._offered) >= MOST_OFFERED:
            for oldest in self._offered:
                del self._offered[oldest]
                break
        self._offered[producer_id] = (epoch, sequence)
        return sequence

    def draft(self, producer_id: int, checked: bool) -> Draft:
        entry = self.producers.get(producer_id)
        return Draft(ProducerEntry(producer_id) if entry is None else entry.copy(), checked)

    def apply(self, drafts: list[Draft], now_ms: int) -> None:
        """The drafts of one append."""
        started: list[OpenTxn] = []
        for draft in drafts:
            if len(self.producers) >= CROWDED:
                self._make_room(draft.entry.producer_id)
            self.producers[draft.entry.producer_id] = draft.entry
            draft.entry.used_ms = now_ms
            if self._offered:
                self._offered.pop(draft.entry.producer_id, None)
            started += draft.started
        if len(drafts) > 1:  # a follower appends batches of several producers, and these may start in turns
            started.sort(key=lambda txn: txn.first_offset)
        for txn in started:
            self._open[txn.first_offset] = txn

    def _make_room(self, producer_id: int) -> None:
        """Mark a producer as the last one used; if there are too many, drop the one that was idle longest.

        A dropped producer may come back like an expired one: its first batch may have any sequence.
        """
        self.producers.pop(producer_id, None)
        if len(self.producers) < MOST_PRODUCERS:
            return
        for place, entry in enumerate(self.producers.values()):
            if entry.txn_first_offset < 0:
                del self.producers[entry.producer_id]
                return
            if place == LOOKED_AT:
                return

    def end_txn(self, ended: EndedTxn) -> None:
        """Moves a transaction from open to ended, and sets its last stable offset: that right after its marker."""
        txn = self._open.pop(ended.first_offset, None)
        if txn is None:
            txn = OpenTxn(ended.producer_id, ended.first_offset)
        ended.last_stable_offset = ended.last_offset + 1
        for first_offset in self._open:
            ended.last_stable_offset = min(first_offset, ended.last_stable_offset)
            break
        txn.last_offset = ended.last_offset
        self._ended[ended.first_offset] = txn

    def first_unstable_offset(self) -> int:
        """The first offset of the earliest transaction that is open or whose marker is not replicated; -1 if none."""
        first = NO_OFFSET
        for offset in self._open:
            first = offset
            break
        for offset in self._ended:
            if first < 0 or offset < first:
                first = offset
        return first

    def add_ended(self, other: ProducerState) -> None:
        """Adds the ended transactions of another state, which knows more of them."""
        self._ended.update(other._ended)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Drops ended transactions whose marker is below the high watermark: they are stable."""
        if self._ended:
            for first_offset in [key for key, txn in self._ended.items() if txn.last_offset < high_watermark]:
                del self._ended[first_offset]

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Drops producers idle for `expiration_ms` without an open transaction; returns how many."""
        silent = [entry for entry in self.producers.values() if is_expired(entry, now_ms, expiration_ms)]
        for entry in silent:
            del self.producers[entry.producer_id]
        return len(silent)

    def load(self, entries: list[ProducerEntry], end_offset: int) -> None:
        """Replaces the whole state."""
        self.clear(end_offset)
        for entry in sorted(entries, key=lambda entry: entry.txn_first_offset):
            self.producers[entry.producer_id] = entry
            if entry.txn_first_offset >= 0:
                self._open[entry.txn_first_offset] = OpenTxn(entry.producer_id, entry.txn_first_offset)

    def clear(self, end_offset: int) -> None:
        self.producers.clear()
        self._open.clear()
        self._ended.clear()
        self._offered.clear()
        self.end_offset = end_offset


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.txn_first_offset < 0 and now_ms - entry.used_ms >= expiration_ms
