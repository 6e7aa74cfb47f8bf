"""What a coordinator knows of one partition of __consumer_offsets: the groups that live there, and their offsets."""

from __future__ import annotations

from ixion.coordinators.group.classic.group import ClassicGroup
from ixion.coordinators.group.consumer.group import ConsumerGroup
from ixion.coordinators.group.offsets import Committed, GroupOffsets
from ixion.model.topic_partition import TopicPartition

Group = ClassicGroup | ConsumerGroup


class GroupShard:
    __slots__ = ("failed", "groups", "leader_epoch", "loading", "offsets", "open_transactions", "partition", "resumed")

    def __init__(self, partition: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.loading = True  # until every record has been replayed
        self.failed = False  # the log cannot be read; loading is tried again
        self.resumed: list[Group] = []  # while loading: the groups whose members are watched already
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, GroupOffsets] = {}
        self.open_transactions: dict[int, set[str]] = {}  # producer id -> groups with pending offsets

    def clear(self) -> None:
        """Before it is loaded, for the first time or once more."""
        self.loading = True
        self.failed = False
        self.groups.clear()
        self.offsets.clear()
        self.open_transactions.clear()

    def group_offsets(self, group_id: str) -> GroupOffsets:
        found = self.offsets.get(group_id)
        if found is None:
            found = self.offsets[group_id] = GroupOffsets()
        return found

    def commit(self, group_id: str, partition: TopicPartition, value: Committed) -> None:
        self.group_offsets(group_id).put(partition, value)

    def commit_pending(self, group_id: str, producer_id: int, partition: TopicPartition, value: Committed) -> None:
        self.group_offsets(group_id).put_pending(producer_id, partition, value)
        self.open_transactions.setdefault(producer_id, set()).add(group_id)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        for group_id in self.open_transactions.pop(producer_id, ()):
            offsets = self.offsets.get(group_id)
            if offsets is not None:
                offsets.end_transaction(producer_id, committed)

    def forget_offset(self, group_id: str, partition: TopicPartition) -> None:
        offsets = self.offsets.get(group_id)
        if offsets is not None:
            offsets.remove(partition)
            if offsets.is_empty:
                del self.offsets[group_id]
