"""The wait for every member of a new generation to send SyncGroup.

Completes when
  A. all members have sent it;
  B. the generation is over: another rebalance began, or the group is gone;
  C. the rebalance timeout has passed: `on_failed` removes the members that did not send it. Otherwise a member that
     joins and then hangs, above all the leader, would hold the group in CompletingRebalance while it sends heartbeats.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.states import COMPLETING_REBALANCE, STABLE
from ixion.purgatory import DelayedOperation


class DelayedSync(DelayedOperation):
    __slots__ = ("_generation", "_group", "_on_failed")

    def __init__(self, group: ClassicGroup, delay_ms: int, on_failed: Callable[[ClassicGroup], None]) -> None:
        super().__init__(delay_ms)
        self._group = group
        self._generation = group.generation
        self._on_failed = on_failed

    def _is_current(self) -> bool:
        group = self._group
        return group.generation == self._generation and group.state in (COMPLETING_REBALANCE, STABLE)

    def try_complete(self) -> bool:
        if not self._is_current() or not self._group.pending_sync:  # B, A
            return self.force_complete()
        return False

    def waits_for(self) -> str:
        group = self._group
        return f"{group.group_id}: SyncGroup of {len(group.pending_sync):,} of {len(group.members):,} members"

    def on_complete(self) -> None:
        """Only the timeout has an effect: no request waits for this."""

    def on_expiration(self) -> None:
        if self._is_current() and self._group.pending_sync:
            self._on_failed(self._group)  # C
