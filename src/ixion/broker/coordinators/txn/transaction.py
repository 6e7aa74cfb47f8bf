"""A transactional id in memory: its stored state, and the one change that may be on its way to the log.

A change is prepared, stored, and only then applied. Until the append is acknowledged, `now` is the previous state, and
other requests get CONCURRENT_TRANSACTIONS. There is one change at a time.
"""

from __future__ import annotations

from ixion.broker.coordinators.txn.snapshot import Snapshot
from ixion.broker.coordinators.txn.states import MAY_FOLLOW


class IllegalTransitionError(Exception):
    """The states do not allow the change, or another change is under way. Nothing is changed."""


class Transaction:
    __slots__ = ("now", "pending", "transactional_id")

    def __init__(self, transactional_id: str, now: Snapshot) -> None:
        self.transactional_id = transactional_id
        self.now = now
        self.pending: Snapshot | None = None  # prepared, not yet stored

    def prepare(self, after: Snapshot) -> None:
        if self.pending is not None:
            raise IllegalTransitionError(
                f"{self.transactional_id}: {after.state.label} while {self.pending.state.label} is under way"
            )
        if self.now.state not in MAY_FOLLOW[after.state]:
            raise IllegalTransitionError(f"{self.transactional_id}: {self.now.state.label} -> {after.state.label}")
        if after.producer_id == self.now.producer_id and after.epoch < self.now.epoch:
            raise IllegalTransitionError(f"{self.transactional_id}: epoch {self.now.epoch} -> {after.epoch}")
        self.pending = after

    def complete(self) -> Snapshot:
        """Apply the change, which is stored."""
        if self.pending is None:
            raise IllegalTransitionError(f"{self.transactional_id}: nothing is under way")
        self.now, self.pending = self.pending, None
        return self.now

    def give_up(self) -> None:
        """Drop the change, which could not be stored."""
        self.pending = None
