"""Tracks transactions during a compaction: which batches were aborted, which markers are no longer needed.

Batches of an aborted transaction are dropped at once. Its marker stays in a compaction that saw one of its batches: a
reader that begins in the middle needs it. Once all batches are gone, the marker is dropped after delete.retention.ms.
"""

from __future__ import annotations

from ixion.log.txn_index import AbortedTxn, TxnIndex
from ixion.records.batch import BatchView
from ixion.records.control import ControlType, control_type


class TxnTracker:
    def __init__(self, index: TxnIndex | None = None) -> None:
        """`index` is the index of the new segment, which gets the aborted transactions whose marker stays."""
        self.index = index
        self._coming: list[AbortedTxn] = []  # by first offset, descending
        self._aborting: dict[int, AbortedTxn] = {}
        self._seen: set[int] = set()  # producers with a batch in the aborted transaction that is open here
        self._committing: set[int] = set()

    def add(self, aborted: list[AbortedTxn]) -> None:
        self._coming = sorted([*self._coming, *aborted], key=lambda txn: -txn.first_offset)

    def is_aborted(self, batch: BatchView) -> bool:
        """Adds a data batch; True if its transaction was aborted."""
        self._advance(int(batch.last_offset))
        if not batch.is_transactional:
            return False
        producer_id = int(batch.producer_id)
        if producer_id in self._aborting:
            self._seen.add(producer_id)
            return True
        self._committing.add(producer_id)
        return False

    def is_spent(self, batch: BatchView) -> bool:
        """Adds a control batch; True if no batch of its transaction is left."""
        self._advance(int(batch.last_offset))
        if batch.count == 0:
            return True
        producer_id = int(batch.producer_id)
        kind = control_type(batch)
        if kind == ControlType.ABORT:
            txn = self._aborting.pop(producer_id, None)
            if txn is not None and producer_id in self._seen:
                self._seen.discard(producer_id)
                if self.index is not None:
                    self.index.append(txn)
                return False
            return True
        if kind == ControlType.COMMIT:
            spent = producer_id not in self._committing
            self._committing.discard(producer_id)
            return spent
        return False

    def _advance(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            txn = self._coming.pop()
            self._aborting.setdefault(txn.producer_id, txn)
