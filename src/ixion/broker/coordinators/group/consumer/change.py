"""A change of a consumer group: applied to the group at once, and collected as records for the log.

If the records cannot be written, memory is ahead of the log; `consumer_writes` then loads the partition again.
"""

from __future__ import annotations

from ixion.broker.coordinators.group.consumer.assignment import NOTHING, Assignment
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.member import ConsumerMember, Subscription
from ixion.broker.coordinators.group.consumer.reconcile import Current
from ixion.broker.coordinators.group.consumer.records import (
    Entry,
    assignment_epoch_record,
    current_record,
    epoch_record,
    member_tombstones,
    regex_record,
    regex_tombstone,
    subscription_record,
    target_record,
)


class Change:
    def __init__(self, group: ConsumerGroup, now_ms: int) -> None:
        self.group = group
        self.now_ms = now_ms
        self.records: list[Entry] = []

    def subscribe(self, member: ConsumerMember, subscription: Subscription) -> None:
        self.group.put(member, subscription)
        self.records.append(subscription_record(self.group.group_id, member))

    def move(self, member: ConsumerMember, current: Current) -> None:
        if current != member.current:
            self.group.move(member, current)
            self.records.append(current_record(self.group.group_id, member))

    def remove(self, member: ConsumerMember) -> None:
        self.group.remove(member.member_id)
        self.records.extend(member_tombstones(self.group.group_id, member.member_id))

    def replace(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """A static member came back under another id: it gets all that the old one had, at epoch 0."""
        target = self.group.target(old.member_id)
        self.remove(old)
        current = Current(epoch=0, previous_epoch=0, state=old.current.state, assigned=old.current.assigned)
        member = ConsumerMember(member_id=member_id, current=current)
        self.subscribe(member, old.subscription)
        self.group.targets[member_id] = target
        self.records.append(target_record(self.group.group_id, member_id, target))
        self.records.append(current_record(self.group.group_id, member))
        return member

    def bump(self, metadata_hash: int) -> None:
        """Start a new epoch: something changed that may need another assignment."""
        self.set_epoch(self.group.epoch + 1, metadata_hash)

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.group.epoch = epoch
        self.group.metadata_hash = metadata_hash
        self.records.append(epoch_record(self.group))

    def set_targets(self, targets: dict[str, Assignment], epoch: int, assigned_ms: int) -> None:
        """Set the targets of an epoch; unchanged targets need no record."""
        group = self.group
        for member_id, target in targets.items():
            if member_id not in group.targets or group.targets[member_id] != target:
                group.targets[member_id] = target or NOTHING
                self.records.append(target_record(group.group_id, member_id, target))
        group.assignment_epoch, group.assigned_ms = epoch, assigned_ms
        self.records.append(assignment_epoch_record(group))

    def resolve(self, regex: str, topics: frozenset[str], version: int) -> None:
        self.group.resolve(regex, topics)
        self.records.append(regex_record(self.group.group_id, regex, topics, version, self.now_ms))

    def forget_regex(self, regex: str) -> None:
        self.group.forget_regex(regex)
        self.records.append(regex_tombstone(self.group.group_id, regex))
