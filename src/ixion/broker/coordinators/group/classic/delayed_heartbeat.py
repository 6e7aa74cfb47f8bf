"""The wait for a member's next heartbeat.

Completes when
  A. the member sent one, or another request, or waits for our answer, which counts as one;
  B. a pending member came back with the id it was given, so it is a real member now;
  C. the member is gone, or the group is;
  D. the session timeout has passed: `on_failed` is called.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.states import DEAD
from ixion.purgatory import DelayedOperation

OnFailed = Callable[[ClassicGroup, str, bool], None]  # group, member id, whether the member is pending


class DelayedHeartbeat(DelayedOperation):
    __slots__ = ("_group", "_is_pending", "_member_id", "_on_failed")

    def __init__(
        self, group: ClassicGroup, member_id: str, timeout_ms: int, on_failed: OnFailed, *, is_pending: bool = False
    ) -> None:
        super().__init__(timeout_ms)
        self._group = group
        self._member_id = member_id
        self._is_pending = is_pending
        self._on_failed = on_failed

    def try_complete(self) -> bool:
        group = self._group
        member = group.members.get(self._member_id)
        if self._is_pending:
            over = member is not None or self._member_id not in group.pending_members  # B, C
        else:
            over = member is None or member.is_alive  # C, A
        return (over or group.state is DEAD) and self.force_complete()

    def waits_for(self) -> str:
        what = "the new member" if self._is_pending else "a heartbeat of"
        return f"{self._group.group_id}: {what} {self._member_id}"

    def on_complete(self) -> None:
        """Only the timeout has an effect: no request waits for this."""

    def on_expiration(self) -> None:
        self._on_failed(self._group, self._member_id, self._is_pending)  # D
