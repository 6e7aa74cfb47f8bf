"""The states of partitions and replicas as the controller sees them, and which state may follow which.

    partition   NONE -> NEW -> ONLINE <-> OFFLINE -> NONE
    replica     NONE -> NEW -> ONLINE <-> OFFLINE -> DELETING -> DELETED -> NONE
                                             \\-> KEPT <-/   (cannot be deleted now: its broker is gone)

A partition is ONLINE while its leader is alive. A replica is ONLINE while its broker is alive and its disk works.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeVar


class PartitionPhase(Enum):
    NONE = "none"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"


class ReplicaPhase(Enum):
    NONE = "none"
    NEW = "new"
    ONLINE = "online"
    OFFLINE = "offline"
    DELETING = "deleting"
    DELETED = "deleted"
    KEPT = "kept"


_P = PartitionPhase
_R = ReplicaPhase

# For each phase, the phases that may precede it.
PARTITION_BEFORE: Final[Mapping[PartitionPhase, frozenset[PartitionPhase]]] = {
    _P.NEW: frozenset({_P.NONE}),
    _P.ONLINE: frozenset({_P.NEW, _P.ONLINE, _P.OFFLINE}),
    _P.OFFLINE: frozenset({_P.NEW, _P.ONLINE, _P.OFFLINE}),
    _P.NONE: frozenset({_P.OFFLINE}),
}
REPLICA_BEFORE: Final[Mapping[ReplicaPhase, frozenset[ReplicaPhase]]] = {
    _R.NEW: frozenset({_R.NONE}),
    _R.ONLINE: frozenset({_R.NEW, _R.ONLINE, _R.OFFLINE, _R.KEPT}),
    _R.OFFLINE: frozenset({_R.NEW, _R.ONLINE, _R.OFFLINE, _R.KEPT}),
    _R.DELETING: frozenset({_R.OFFLINE}),
    _R.DELETED: frozenset({_R.DELETING}),
    _R.KEPT: frozenset({_R.OFFLINE, _R.DELETING}),
    _R.NONE: frozenset({_R.DELETED}),
}

Phase = TypeVar("Phase", PartitionPhase, ReplicaPhase)


class IllegalMoveError(Exception):
    """The state machine has no such transition; nothing has changed."""


def entered(before: Phase, after: Phase, table: Mapping[Phase, frozenset[Phase]], what: str) -> Phase:
    """`after`, if it may follow `before`."""
    if before not in table[after]:
        raise IllegalMoveError(f"{what} cannot become {after.value}: it is {before.value}")
    return after
