"""The stored state of share partitions, as the leader of the partition sees it; the share coordinator implements it.

A share partition is one partition as consumed by one share group. Its leader keeps the window of records in flight and
stores every change of it with the share coordinator, a partition of `__share_group_state`, which may be led by another
broker. Kafka calls this interface Persister.

    read_state    once, when the leader makes its share partition; older leaders are fenced from then on
    write_state   before an acknowledgement is answered, and after a lock has expired

Answers go to callbacks, each called once on the event loop, perhaps before the method returns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ixion.language.model.errors import ErrorCode

# Delivery states as they are stored. ACQUIRED (1) never is: acquired records are available to the next leader.
AVAILABLE: Final = 0
ACKNOWLEDGED: Final = 2
ARCHIVING: Final = 3  # waits for its dead letter (Kafka 4.4)
ARCHIVED: Final = 4

NO_OFFSET: Final = -1  # the start offset of a group that has not fetched yet: the leader applies auto.offset.reset
NO_COUNT: Final = -1  # the writer does not count what is complete


class SharePartitionKey(NamedTuple):
    """Names a share partition."""

    group: str
    topic_id: bytes
    partition: int


class StateBatch(NamedTuple):
    """Offsets with the same state, `first` and `last` included."""

    first: int
    last: int
    state: int
    deliveries: int  # so far
    due_ms: int = 0  # wall clock; an AVAILABLE batch is not delivered before. 0: at once. A tagged field of ours


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareState:
    """What is stored of a share partition."""

    state_epoch: int  # raised when an administrator alters or deletes the offsets
    start_offset: int  # records before it are finished; or NO_OFFSET
    batches: tuple[StateBatch, ...]  # ascending, disjoint, none before the start; offsets between them are available


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdate:
    """What has changed in a share partition."""

    state_epoch: int  # as read: an older one is refused with FENCED_STATE_EPOCH
    leader_epoch: int  # of the partition: an older one is refused with FENCED_LEADER_EPOCH
    start_offset: int  # or NO_OFFSET, if it has not moved
    delivery_complete_count: int  # finished records behind the start offset; for the lag (KIP-1226)
    batches: tuple[StateBatch, ...]  # only those that changed, in any order; of two that overlap the later one counts


StateRead = Callable[[ErrorCode, ShareState | None], None]  # the state unless there is an error
StateWritten = Callable[[ErrorCode], None]


class SharePersister(Protocol):
    """Retries by itself while a coordinator is loading, moves or cannot be reached, for a few seconds.

    COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR: it was not reached in time; a later call
    may succeed. FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH: drop the share partition and make it anew.
    GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION: nothing is stored, because the group never subscribed to the
    topic or its offsets were deleted.
    """

    def read_state(self, key: SharePartitionKey, leader_epoch: int, done: StateRead) -> None:
        """Read the state, and refuse writes of leaders with a lower epoch from now on."""

    def write_state(self, key: SharePartitionKey, update: StateUpdate, done: StateWritten) -> None:
        """Store a change. After any error the change is not stored, or it is not known whether it is."""
