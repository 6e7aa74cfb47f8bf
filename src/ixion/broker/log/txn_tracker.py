"""Tracks transactions during a compaction: which batches were aborted, which markers are no longer needed.

Batches of an aborted transaction are dropped at once. A marker stays as long as a batch of its transaction does, even
an empty one that keeps a producer's sequence: without the marker, a start that reads the log would find a transaction
that never ends. A compaction that finds no such batch gives the marker a delete horizon, and drops it after
delete.retention.ms: a reader that began in the middle may still need it.

    first compaction    1:a aborted   2:abort        ->   2:abort              1 was there, so 2 stays as it is
    second              2:abort                      ->   2:abort, horizon     nothing is left of the transaction
    after the horizon   2:abort, horizon             ->   -                    and with the marker its index entry
"""

from __future__ import annotations

from ixion.broker.log.txn_index import AbortedTxn
from ixion.language.records.batch import BatchView
from ixion.language.records.control import ControlType, control_type


class TxnTracker:
    """Give it the batches of a log in their order."""

    def __init__(self, aborted: list[AbortedTxn]) -> None:
        """`aborted`: all aborted transactions with records among these batches (`view.aborted_within`)."""
        self._coming = sorted(aborted, key=lambda txn: -txn.first_offset)
        self._aborted: dict[int, AbortedTxn] = {}  # by producer: the last one that has begun
        self._open: set[int] = set()  # producers with a batch since their last marker

    def is_aborted(self, batch: BatchView) -> bool:
        """Adds a data batch; True if its transaction was aborted."""
        if not batch.is_transactional:
            return False
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            txn = self._coming.pop()
            self._aborted[txn.producer_id] = txn
        producer_id = int(batch.producer_id)
        self._open.add(producer_id)
        found = self._aborted.get(producer_id)
        return found is not None and found.first_offset <= batch.last_offset < found.last_offset

    def is_spent(self, batch: BatchView) -> bool:
        """Adds a control batch; True if no batch of its transaction is left."""
        if batch.count == 0:
            return True
        if control_type(batch) not in (ControlType.COMMIT, ControlType.ABORT):
            return False
        producer_id = int(batch.producer_id)
        if producer_id in self._open:
            self._open.discard(producer_id)
            return False
        return True
