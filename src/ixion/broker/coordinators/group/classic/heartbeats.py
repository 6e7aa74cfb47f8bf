"""Session timeouts: one `DelayedHeartbeat` per member, renewed by every request of the member."""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion.broker.coordinators.group.classic.delayed_heartbeat import DelayedHeartbeat, OnFailed
from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.member import ClassicMember
from ixion.purgatory import DelayedOperationPurgatory

# How long a new member may wait in its first rebalance. It sends no heartbeats: it does not know its id yet, and its
# connection is not read while it waits. If it gave up and came back under another id, this timeout removes the old one.
NEW_MEMBER_TIMEOUT_MS: Final = 300_000


class Heartbeats:
    def __init__(self, purgatory: DelayedOperationPurgatory, on_failed: OnFailed) -> None:
        self._purgatory = purgatory
        self._on_failed = on_failed

    def renew(self, group: ClassicGroup, member: ClassicMember) -> None:
        """The member is alive now; expect its next heartbeat within its session timeout, or later if it is new."""
        key = (group.group_id, member.member_id)
        member.heartbeat_satisfied = True
        self._purgatory.check_and_complete(key)
        member.heartbeat_satisfied = False
        wait_ms = NEW_MEMBER_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        # Completes at once if a request of the member waits for our answer: no heartbeat is due then.
        self._purgatory.try_complete_else_watch(
            DelayedHeartbeat(group, member.member_id, wait_ms, self._on_failed), (key,)
        )

    def expect_return(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """Expect a pending member to return with the id that it was given."""
        operation = DelayedHeartbeat(group, member_id, timeout_ms, self._on_failed, is_pending=True)
        self._purgatory.try_complete_else_watch(operation, ((group.group_id, member_id),))

    def end(self, group: ClassicGroup, member_id: str) -> None:
        """The member, or the group, is gone: stop watching."""
        self._purgatory.check_and_complete((group.group_id, member_id))
