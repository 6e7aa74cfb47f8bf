"""The states of a consumer group and of its members.

A member follows its target assignment in steps, each of them one heartbeat:

    STABLE ──new target──▶ UNREVOKED_PARTITIONS ──it has revoked──▶ STABLE, if all of its target is free
                 │                                                   │
                 └──nothing to revoke──▶ UNRELEASED_PARTITIONS ◀─────┘ else
                                               └──others have revoked──▶ STABLE

It may read what it is assigned in every state. It stays at its old epoch while it has partitions to revoke, and then
moves to the epoch of the target.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class MemberState(IntEnum):
    """The numbers are those of the records."""

    STABLE = 1
    UNREVOKED_PARTITIONS = 2  # must revoke some
    UNRELEASED_PARTITIONS = 3  # waits for others to revoke some
    UNKNOWN = 127  # written by a broker that knows more states


class ConsumerGroupState(Enum):
    """The values are the names that ConsumerGroupDescribe and ListGroups show."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # no target has been computed since the last change
    RECONCILING = "Reconciling"  # members are on their way to their targets
    STABLE = "Stable"
    DEAD = "Dead"
