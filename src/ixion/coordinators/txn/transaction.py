"""A transactional id in memory: what is stored of it, and the one change that may be on its way to the log.

A change is prepared, stored, and only then made: until the append is acknowledged, `now` says what was true before, and
other requests get CONCURRENT_TRANSACTIONS. There is one change at a time.
"""

from __future__ import annotations

from ixion.coordinators.txn.snapshot import Snapshot
from ixion.coordinators.txn.states import MAY_FOLLOW


class IllegalTransitionError(Exception):
    """A change that the states do not allow, or a second one while one is under way. Nothing was changed."""


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
        """The change is stored: it is the truth now."""
        if self.pending is None:
            raise IllegalTransitionError(f"{self.transactional_id}: nothing is under way")
        self.now, self.pending = self.pending, None
        return self.now

    def give_up(self) -> None:
        """The change could not be stored: nothing has happened."""
        self.pending = None
