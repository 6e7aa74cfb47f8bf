"""One step of a member towards its target. No I/O, no clock, nothing is changed.

Three rules keep a partition from having two readers:

1. A member must first revoke the partitions that it has and should not have. Until it reports that it no longer owns
   them, it stays at its old epoch and the partitions stay its own.
2. A partition is given to a member only when no other member has it.
3. In every step a member keeps the partitions that are also in its target.

The target may be older than the member's subscription. A member gets and keeps no partitions of topics that it no
longer reads. If it subscribes to them again, it gets them with the next target.

Member at epoch 5 with {0, 1, 2}, target of epoch 6 {1, 3}, partition 3 still with another member:

    heartbeat 1              epoch 5  has {1}      must revoke {0, 2}   UNREVOKED_PARTITIONS
    heartbeat 2, owns {1}    epoch 6  has {1}      3 is not free            UNRELEASED_PARTITIONS
    heartbeat 3, 3 is free   epoch 6  has {1, 3}                            STABLE

A partition remembers the epoch at which the member got it: here 1 is its own since epoch 5 or before, 3 since 6. So a
commit that was sent at epoch 5, and overtaken by a heartbeat, still counts for 1, and never for 3 (KIP-1251).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ixion.broker.coordinators.group.consumer.assignment import (
    NOTHING,
    Assignment,
    overlap,
    together,
    without,
)
from ixion.broker.coordinators.group.consumer.states import MemberState


@dataclass(frozen=True, slots=True, kw_only=True)
class Current:
    """The state of a member on its way to its target."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=dict)
    revoking: Assignment = field(default_factory=dict)  # must be revoked; still the member's own
    since: Mapping[tuple[bytes, int], int] = field(default_factory=dict)  # given at this epoch; else at `epoch`

    def held(self) -> Iterator[tuple[bytes, int]]:
        for part in (self.assigned, self.revoking):
            for topic_id, partitions in part.items():
                for partition in partitions:
                    yield topic_id, partition

    def held_since(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch at which the member got the partition; None if it does not have it."""
        for part in (self.assigned, self.revoking):
            if partition in part.get(topic_id, ()):
                return self.since.get((topic_id, partition), self.epoch)
        return None

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def moved(self, epoch: int, state: MemberState, assigned: Assignment, revoking: Assignment = NOTHING) -> Current:
        previous = self.previous_epoch if epoch == self.epoch else self.epoch
        moved = Current(epoch=epoch, previous_epoch=previous, state=state, assigned=assigned, revoking=revoking)
        stays = replace(moved, assigned=overlap(assigned, self.assigned))  # without what it revoked and gets back
        since = {held: given for held in stays.held() if (given := self.held_since(*held)) not in (None, epoch)}
        return replace(moved, since=since)


def reconcile(
    current: Current,
    target: Assignment,
    target_epoch: int,
    owned: Assignment | None,
    *,
    reads: Callable[[bytes], bool],
    is_free: Callable[[bytes, int], bool],
) -> Current:
    """`owned` is what the member reports to own; None if it reports nothing, which counts as still owning everything.

    `reads` says whether the member subscribes to a topic, `is_free` whether no other member has a partition.
    """
    if current.state is MemberState.UNREVOKED_PARTITIONS and _still_has(owned, current.revoking):
        keeps = _only(current.assigned, reads)
        revoking = together(current.revoking, without(current.assigned, keeps))
        return current.moved(current.epoch, MemberState.UNREVOKED_PARTITIONS, keeps, revoking)
    target = _only(target, reads)
    if current.is_reconciled_to(target_epoch):
        target = overlap(target, current.assigned)  # it had all of its target, and revoked what is missing
    keeps = overlap(current.assigned, target)
    revoking = without(current.assigned, keeps)
    if revoking and _still_has(owned, revoking):
        return current.moved(current.epoch, MemberState.UNREVOKED_PARTITIONS, keeps, revoking)
    wants = without(target, keeps)
    ready = {
        topic: free
        for topic, partitions in wants.items()
        if (free := frozenset(number for number in partitions if is_free(topic, number)))
    }
    waits = ready != wants
    state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
    return current.moved(target_epoch, state, together(keeps, ready))


def _only(assignment: Assignment, reads: Callable[[bytes], bool]) -> Assignment:
    return {topic: partitions for topic, partitions in assignment.items() if reads(topic)}


def _still_has(owned: Assignment | None, asked: Assignment) -> bool:
    return owned is None or bool(overlap(asked, owned))
