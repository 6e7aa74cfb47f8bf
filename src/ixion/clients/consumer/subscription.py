"""What a consumer reads and how far: partitions, positions, pauses and resets. No I/O.

A partition that was just assigned has no position. It gets one from `place`: what the group has committed, or where the
reset policy says; until then it is not fetched. The position is the offset of the next record to be handed out, so it
moves with what the caller gets, not with what was fetched.

    assigned -> (no position) --place--> offset --move--> offset --reset--> (no position)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ixion.clients.metadata import TopicPartition
from ixion.clients.offsets import EARLIEST, LATEST

POLICIES: Final = {"earliest": EARLIEST, "latest": LATEST}


class NotAssignedError(ValueError):
    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"{partition} is not assigned to this consumer")


class Assigned:
    """One partition."""

    __slots__ = ("paused", "position", "reset")

    def __init__(self) -> None:
        self.position: int | None = None
        self.reset: int | None = None  # EARLIEST or LATEST, if the caller asked for it; what is committed is ignored
        self.paused = False


class Subscription:
    def __init__(self) -> None:
        self._assigned: dict[TopicPartition, Assigned] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._assigned

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted(self._assigned)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """These and no others. Those that stay keep their positions and pauses."""
        self._assigned = {each: self._assigned.get(each) or Assigned() for each in partitions}

    def position(self, partition: TopicPartition) -> int | None:
        return self._of(partition).position

    def positions(self) -> dict[TopicPartition, int]:
        return {each: state.position for each, state in self._assigned.items() if state.position is not None}

    def place(self, partition: TopicPartition, offset: int) -> None:
        """Give it a position: committed, reset, or a seek."""
        state = self._of(partition)
        state.position, state.reset = offset, None

    def move(self, partition: TopicPartition, offset: int) -> None:
        """Records before `offset` have been handed out."""
        self._assigned[partition].position = offset

    def ask_reset(self, partition: TopicPartition, to: int | None) -> None:
        """Take its position away; `to` is EARLIEST or LATEST, None for what the policy says."""
        state = self._of(partition)
        state.position, state.reset = None, to

    def unplaced(self) -> dict[TopicPartition, int | None]:
        """Partitions without a position, and where the caller wants them reset to, if it said so."""
        return {each: state.reset for each, state in self._assigned.items() if state.position is None}

    def pause(self, partition: TopicPartition) -> None:
        self._of(partition).paused = True

    def resume(self, partition: TopicPartition) -> None:
        self._of(partition).paused = False

    def is_paused(self, partition: TopicPartition) -> bool:
        return self._of(partition).paused

    def _of(self, partition: TopicPartition) -> Assigned:
        state = self._assigned.get(partition)
        if state is None:
            raise NotAssignedError(partition)
        return state
