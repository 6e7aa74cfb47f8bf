"""What a consumer reads and how far: partitions, positions, pauses and resets. No I/O.

A newly assigned partition has no position. `place` gives it one: the committed offset, or that of the reset policy;
until then it is not fetched. The position is the offset of the next record to be returned, so it moves with what the
caller gets, not with what was fetched.

    assigned -> (no position) --place--> offset --move--> offset --reset--> (no position)

`version` grows whenever a position is set: answers to requests of an older version are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from ixion._native import i64
from ixion.clients.metadata import TopicPartition

LATEST: Final = -1  # in place of a time: the high watermark, or the last stable offset for read_committed
EARLIEST: Final = -2  # the log start
POLICIES: Final = {"earliest": EARLIEST, "latest": LATEST}
NO_EPOCH: Final = -1
UNCHECKED: Final = -2  # no leader has been asked about the position yet


class NotAssignedError(ValueError):
    """A call names a partition that this consumer does not read."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition} is not assigned to this consumer")


@final
class Assigned:
    """One partition."""

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        self.version = 0
        self.paused = False
        self.is_leaving = False  # it is being revoked: what is handed out now would be read again by its next owner
        # Where it is read.
        self.position: int | None = None
        self.position_epoch = NO_EPOCH  # leader epoch of the record before the position
        self.reset: int | None = None  # EARLIEST or LATEST, if the caller asked for it; committed offsets are ignored
        self.is_lost = False  # its position no longer exists, so the committed offset is no help
        self.is_placing = False  # a broker is being asked for its position
        self.known_end: int | None = None  # the end of the log, when a reset by duration began
        # Where it is fetched: behind what is in the buffer.
        self.fetch_offset: i64 = 0
        self.fetch_epoch = NO_EPOCH  # leader epoch of the record before it
        self.checked_epoch = UNCHECKED  # the leader epoch that the fetch offset was last compared with
        self.is_flying = False  # a fetch or a comparison is in flight
        self.not_before_s = 0.0  # after a fault
        self.failures = 0
        self.out_of_range = False  # the fetch offset does not exist; handled when the buffer is empty
        self.truncated_to: int | None = None  # the offset where the leader's log diverges from what was read
        self.replica = -1  # the follower that the leader named (KIP-392)
        self.replica_until_s = 0.0
        # What is buffered of it.
        self.fetches = 0
        self.buffered_bytes: i64 = 0

    def start_at(self, offset: int, epoch: int) -> None:
        self.version += 1
        self.known_end = None
        self.position = offset
        self.position_epoch = epoch
        self.reset = None
        self.is_lost = False
        self.is_placing = False
        self.fetch_offset = offset
        self.fetch_epoch = epoch
        self.checked_epoch = UNCHECKED
        self.forget_faults()

    @property
    def is_held(self) -> bool:
        """Whether nothing of it may be handed out or fetched."""
        return self.paused or self.is_leaving

    def forget(self) -> None:
        """Remove its position."""
        self.version += 1
        self.known_end = None
        self.position = None
        self.position_epoch = NO_EPOCH
        self.is_placing = False
        self.forget_faults()

    def forget_faults(self) -> None:
        self.is_flying = False
        self.out_of_range = False
        self.truncated_to = None
        self.not_before_s = 0.0
        self.failures = 0

    def must_check(self, leader_epoch: int) -> bool:
        """Whether the fetch offset must be compared with the log of that leader (KIP-320).

        A leader that was elected uncleanly, or that lost its disk, may have other records at our offsets:

            read up to 120, the last of epoch 4     the leader, now of epoch 6: epoch 4 ends at 150   go on at 120
                                                                                epoch 4 ends at 100   truncated: 100
        """
        if leader_epoch < 0 or self.fetch_epoch < 0:
            self.checked_epoch = leader_epoch  # an old broker, or nothing read yet
            return False
        if self.checked_epoch == UNCHECKED and self.fetch_epoch == leader_epoch:
            self.checked_epoch = leader_epoch  # the record is of this leader's epoch
        return self.checked_epoch != leader_epoch


class Subscription:
    def __init__(self) -> None:
        self.assigned: dict[TopicPartition, Assigned] = {}
        self.changes = 0  # of assignment, pauses and positions, except moves with returned records

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self.assigned

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted(self.assigned)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Assign exactly these. Those that were assigned before keep their positions and pauses."""
        self.assigned = {each: self.assigned.get(each) or Assigned(each) for each in partitions}
        self.changes += 1

    def position(self, partition: TopicPartition) -> int | None:
        return self.of(partition).position

    def positions(self) -> dict[TopicPartition, int]:
        return {each: state.position for each, state in self.assigned.items() if state.position is not None}

    def place(self, partition: TopicPartition, offset: int, epoch: int = NO_EPOCH) -> None:
        """Set a position: committed, reset, or by seek. `epoch` is that of the record before it, if known."""
        self.changes += 1
        self.of(partition).start_at(offset, epoch)

    def move(self, partition: TopicPartition, offset: int, epoch: int = NO_EPOCH) -> None:
        """Note that records before `offset` have been returned."""
        state = self.assigned[partition]
        state.position = offset
        state.position_epoch = epoch

    def ask_reset(self, partition: TopicPartition, to: int | None) -> None:
        """Remove its position; `to` is EARLIEST or LATEST, None for the policy."""
        state = self.of(partition)
        self.changes += 1
        state.forget()
        state.reset = to

    def pause(self, partition: TopicPartition) -> None:
        self.of(partition).paused = True
        self.changes += 1

    def resume(self, partition: TopicPartition) -> None:
        self.of(partition).paused = False

    def is_paused(self, partition: TopicPartition) -> bool:
        return self.of(partition).paused

    def of(self, partition: TopicPartition) -> Assigned:
        state = self.assigned.get(partition)
        if state is None:
            raise NotAssignedError(partition)
        return state
