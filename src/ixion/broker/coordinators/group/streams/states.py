"""The states of a streams group and of its members, and what a heartbeat's answer says about the group.

A member follows its target in steps, as in a consumer group:

    STABLE ──new target──▶ UNREVOKED_TASKS ──it has revoked──▶ STABLE, if all of its target is free
                 │                                              │
                 └──nothing to revoke──▶ UNRELEASED_TASKS ◀─────┘ else
                                               └──others have revoked──▶ STABLE
"""

from __future__ import annotations

from enum import Enum, IntEnum


class MemberState(IntEnum):
    """The numbers are those of the records."""

    STABLE = 1
    UNREVOKED_TASKS = 2  # must revoke some
    UNRELEASED_TASKS = 3  # waits for others to revoke some
    UNKNOWN = 127  # written by a broker that knows more states


class StreamsGroupState(Enum):
    """The values are the names that StreamsGroupDescribe and ListGroups show."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"  # the topology has no valid topics: see `configure`
    ASSIGNING = "Assigning"  # no target has been computed since the last change
    RECONCILING = "Reconciling"  # members are on their way to their targets
    STABLE = "Stable"
    DEAD = "Dead"


class StatusCode(IntEnum):
    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
