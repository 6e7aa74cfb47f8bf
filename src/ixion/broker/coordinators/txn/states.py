"""The states of a transactional id, and which may follow which.

    Empty ──> Ongoing ──> PrepareCommit ──> CompleteCommit ──┐
      ^          │                                           │
      │          └──────> PrepareAbort ───> CompleteAbort ───┤
      └──────── InitProducerId ── or Ongoing again ──────────┘

Prepare means: the outcome is decided and stored, and markers are on their way to the partitions. Complete means: every
partition has its marker. From Empty and from both Completes a client of transaction.version 2 may abort although
nothing was added (it cannot know whether its first write arrived), which raises its epoch.

Dead is an id that is about to expire; its record is a tombstone. PrepareEpochFence is Kafka's name for an ongoing
transaction that the coordinator is about to abort; it lasts no longer than one call and is never stored.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class State(IntEnum):
    """The numbers are those in `__transaction_state`; the labels are those that clients see."""

    label: str

    def __new__(cls, number: int, label: str = "") -> State:
        member = int.__new__(cls, number)
        member._value_ = number
        member.label = label
        return member

    EMPTY = 0, "Empty"
    ONGOING = 1, "Ongoing"
    PREPARE_COMMIT = 2, "PrepareCommit"
    PREPARE_ABORT = 3, "PrepareAbort"
    COMPLETE_COMMIT = 4, "CompleteCommit"
    COMPLETE_ABORT = 5, "CompleteAbort"
    DEAD = 6, "Dead"
    PREPARE_EPOCH_FENCE = 7, "PrepareEpochFence"


BY_LABEL: Final = {state.label: state for state in State}

# No transaction is open: a producer may start, a transaction may begin, the id may expire.
SETTLED: Final = frozenset({State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT})
# Decided, but not every partition has its marker.
ENDING: Final = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})

MAY_FOLLOW: Final = {
    State.EMPTY: SETTLED,
    State.ONGOING: SETTLED | {State.ONGOING},
    State.PREPARE_COMMIT: frozenset({State.ONGOING}),
    State.PREPARE_ABORT: SETTLED | {State.ONGOING},
    State.COMPLETE_COMMIT: frozenset({State.PREPARE_COMMIT}),
    State.COMPLETE_ABORT: frozenset({State.PREPARE_ABORT}),
    State.DEAD: SETTLED,
    State.PREPARE_EPOCH_FENCE: frozenset({State.ONGOING}),
}
