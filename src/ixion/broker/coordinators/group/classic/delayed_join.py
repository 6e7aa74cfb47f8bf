"""The wait for members to join a rebalance.

`DelayedJoin` completes when
  A. all known members have joined, and no pending member has yet to return with its id;
  B. the group is gone: deleted, or moved to another coordinator;
  C. the longest rebalance timeout of any member has passed.

`InitialDelayedJoin` is the wait of a group that was empty. Without it the first member would form a generation alone,
and the second member would start another rebalance a moment later. So the group waits
`group.initial.rebalance.delay.ms`, even if all known members have joined. If a member joins during that span, another
span follows, up to the rebalance timeout in all. With a delay of 3 s, a rebalance timeout of 10 s and a member every 2
s, spans end at 3, 6, 9 and 10 s.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.states import DEAD
from ixion.purgatory import DelayedOperation

OnJoined = Callable[[ClassicGroup], None]


class DelayedJoin(DelayedOperation):
    __slots__ = ("_group", "_on_joined")

    def __init__(self, group: ClassicGroup, delay_ms: int, on_joined: OnJoined) -> None:
        super().__init__(delay_ms)
        self._group = group
        self._on_joined = on_joined

    def try_complete(self) -> bool:
        group = self._group
        if group.has_all_members_joined or group.state is DEAD:  # A, B
            return self.force_complete()
        return False

    def waits_for(self) -> str:
        group = self._group
        pending = f", {len(group.pending_members):,} more were given an id" if group.pending_members else ""
        return f"{group.group_id}: {group.awaiting_join:,} of {len(group.members):,} members have joined{pending}"

    def on_complete(self) -> None:
        self._on_joined(self._group)


class InitialDelayedJoin(DelayedOperation):
    __slots__ = ("_go_on", "_group", "_on_joined", "_remaining_ms", "_span_ms")

    def __init__(
        self,
        group: ClassicGroup,
        span_ms: int,
        remaining_ms: int,
        on_joined: OnJoined,
        go_on: Callable[[InitialDelayedJoin], None],
    ) -> None:
        """Waits for one span, or for the remaining time if that is shorter; `go_on` starts the next wait."""
        super().__init__(min(span_ms, remaining_ms))
        self._group = group
        self._span_ms = span_ms
        self._remaining_ms = max(remaining_ms - span_ms, 0)  # after this wait
        self._on_joined = on_joined
        self._go_on = go_on

    @property
    def group_id(self) -> str:
        return self._group.group_id

    def try_complete(self) -> bool:
        return self._group.state is DEAD and self.force_complete()  # B

    def waits_for(self) -> str:
        return f"{self._group.group_id}: more members, {len(self._group.members):,} so far"

    def on_complete(self) -> None:
        group = self._group
        if group.new_member_added and self._remaining_ms > 0 and group.state is not DEAD:
            group.new_member_added = False
            self._go_on(InitialDelayedJoin(group, self._span_ms, self._remaining_ms, self._on_joined, self._go_on))
        else:
            self._on_joined(group)
