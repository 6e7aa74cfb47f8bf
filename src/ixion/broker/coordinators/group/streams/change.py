"""A change of a streams group: applied to the group at once, and collected as records for the log.

If the records cannot be written, memory is ahead of the log; `consumer_writes` then loads the partition again.
"""

from __future__ import annotations

from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.member import Profile, StreamsMember
from ixion.broker.coordinators.group.streams.reconcile import Current
from ixion.broker.coordinators.group.streams.records import (
    Entry,
    assignment_epoch_record,
    current_record,
    epoch_record,
    member_record,
    member_tombstones,
    target_record,
    topology_record,
)
from ixion.broker.coordinators.group.streams.tasks import Tasks
from ixion.broker.coordinators.group.streams.topology import Topology


class StreamsChange:
    def __init__(self, group: StreamsGroup, now_ms: int) -> None:
        self.group = group
        self.now_ms = now_ms
        self.records: list[Entry] = []
        self.is_bumped = False

    def put(self, member: StreamsMember, profile: Profile) -> None:
        self.group.put(member, profile)
        self.records.append(member_record(self.group.group_id, member))

    def move(self, member: StreamsMember, current: Current) -> None:
        if current != member.current:
            has_other = current.assigned != member.current.assigned
            self.group.move(member, current)
            self.records.append(current_record(self.group.group_id, member))
            if has_other and member.profile.endpoint is not None:
                self.group.endpoint_epoch += 1

    def remove(self, member: StreamsMember) -> None:
        self.group.remove(member.member_id)
        self.records.extend(member_tombstones(self.group.group_id, member.member_id))
        if member.profile.endpoint is not None:
            self.group.endpoint_epoch += 1

    def replace(self, old: StreamsMember, member_id: str) -> StreamsMember:
        """A static member came back under another id: it gets all that the old one had, at epoch 0."""
        target = self.group.target(old.member_id)
        self.remove(old)
        current = Current(epoch=0, previous_epoch=0, state=old.current.state, assigned=old.current.assigned)
        member = StreamsMember(member_id=member_id, current=current)
        self.put(member, old.profile)
        self.group.set_target(member_id, target)
        self.records.append(target_record(self.group.group_id, member_id, target))
        self.records.append(current_record(self.group.group_id, member))
        return member

    def set_topology(self, topology: Topology) -> None:
        self.group.topology = topology
        self.group.configured = None
        self.group.seen_version = -1
        self.records.append(topology_record(self.group.group_id, topology))

    def bump(self) -> None:
        """Start a new epoch: something changed that may need another assignment. At most one in a change."""
        if not self.is_bumped:
            self.group.epoch += 1
            self.is_bumped = True

    def set_targets(self, targets: dict[str, Tasks]) -> None:
        """Set the targets of the group's epoch; unchanged targets need no record."""
        group = self.group
        for member_id, target in targets.items():
            if member_id not in group.targets or group.targets[member_id] != target:
                group.set_target(member_id, target)
                self.records.append(target_record(group.group_id, member_id, target))
        group.assignment_epoch, group.assigned_ms = group.epoch, self.now_ms
        self.records.append(assignment_epoch_record(group))

    def close(self) -> list[Entry]:
        """The records of the change, with the group's epoch if it has grown."""
        if self.is_bumped:
            self.records.append(epoch_record(self.group))
            self.is_bumped = False
        return self.records
