"""The states of a classic group, and which may follow which.

    Empty ──join──▶ PreparingRebalance ──all joined──▶ CompletingRebalance ──leader synced──▶ Stable
      ▲                  │   ▲   ▲                          │                                   │
      └──nobody joined───┘   │   └─member left, new member──┘                                   │
                             └─────────────────member left, failed, new, changed────────────────┘

Any state may turn Dead: the group was deleted, or moved to another coordinator.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class GroupState(Enum):
    """The values are the names that DescribeGroups and ListGroups show."""

    EMPTY = "Empty"  # no members; offsets may be there
    PREPARING_REBALANCE = "PreparingRebalance"  # waits for members to join
    COMPLETING_REBALANCE = "CompletingRebalance"  # waits for the leader's assignment
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = GroupState.EMPTY
PREPARING_REBALANCE: Final = GroupState.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = GroupState.COMPLETING_REBALANCE
STABLE: Final = GroupState.STABLE
DEAD: Final = GroupState.DEAD

# For each state, the states that may precede it.
BEFORE: Final[dict[GroupState, frozenset[GroupState]]] = {
    EMPTY: frozenset({PREPARING_REBALANCE}),
    PREPARING_REBALANCE: frozenset({EMPTY, COMPLETING_REBALANCE, STABLE}),
    COMPLETING_REBALANCE: frozenset({PREPARING_REBALANCE}),
    STABLE: frozenset({COMPLETING_REBALANCE}),
    DEAD: frozenset(GroupState),
}


class IllegalTransitionError(RuntimeError):
    """The state cannot follow the one that the group is in; nothing is changed."""


def check_transition(group_id: str, before: GroupState, after: GroupState) -> None:
    if before not in BEFORE[after]:
        raise IllegalTransitionError(f"group {group_id!r} cannot go from {before.value} to {after.value}")
