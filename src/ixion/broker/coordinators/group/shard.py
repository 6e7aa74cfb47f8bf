"""The state of one partition of __consumer_offsets: its groups, and their offsets."""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.in_flight import InFlight
from ixion.broker.coordinators.group.offsets import Committed, GroupOffsets
from ixion.broker.coordinators.group.share.group import ShareGroup
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.language.model.topic_partition import TopicPartition

MOST_UNREPLICATED: Final = 10_000  # groups

Group = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup


class GroupShard:
    __slots__ = (
        "elected_in",
        "failed",
        "groups",
        "in_flight",
        "leader_epoch",
        "loading",
        "offsets",
        "open_transactions",
        "partition",
        "resumed",
        "unreplicated",
        "unreplicated_end",
    )

    def __init__(self, partition: int, leader_epoch: int) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.elected_in: int | None = None  # the ZooKeeper session of this broker; None if it may have expired
        self.loading = True  # until every record has been replayed
        self.failed = False  # the log cannot be read; loading is tried again
        self.resumed: list[Group] = []  # while loading: the groups whose members are watched already
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, GroupOffsets] = {}
        self.in_flight = InFlight()
        self.open_transactions: dict[int, set[str]] = {}  # producer id -> groups with pending offsets
        self.unreplicated: dict[str, int] = {}  # group -> end offset of its last commit that waits for replicas
        self.unreplicated_end = 0  # the same for all groups beyond MOST_UNREPLICATED

    def clear(self) -> None:
        """Forget everything, before the partition is loaded or loaded again."""
        self.loading = True
        self.failed = False
        self.groups.clear()
        self.offsets.clear()
        self.in_flight.clear()
        self.open_transactions.clear()
        self.unreplicated.clear()
        self.unreplicated_end = 0

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

    def wait_for_replicas(self, group_id: str, end: int) -> None:
        """Note that a commit of the group ends at offset `end`, which the replicas do not have yet."""
        if len(self.unreplicated) >= MOST_UNREPLICATED and group_id not in self.unreplicated:
            self.unreplicated.clear()
            self.unreplicated_end = end
        self.unreplicated[group_id] = end

    def replicated(self, group_id: str, end: int) -> None:
        if self.unreplicated.get(group_id, end + 1) <= end:
            del self.unreplicated[group_id]

    def awaited_end(self, group_id: str) -> int:
        """The offset up to which the replicas must have the log before the group's offsets are stable."""
        return max(self.unreplicated.get(group_id, 0), self.unreplicated_end)

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
