"""A consumer's part in a group: joins within poll, heartbeats beside it, commits, the listener.

With an eager assignor, all partitions are given up before a join, and those that are assigned begin where the group has
committed. With cooperative-sticky alone, partitions are read on until the group wants them back: those are given up
after the join, and a second join hands them to their new owners. The consumer protocol (KIP-848) goes on in the same
steps, but there the coordinator assigns.

The member has a connection of its own, because heartbeats go out while the consumer waits for records.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from ixion.clients.assignors import COOPERATIVE
from ixion.clients.cluster import Cluster
from ixion.clients.consumer.errors import CommitFailedError
from ixion.clients.consumer.heartbeats import Heartbeats
from ixion.clients.consumer.member import GroupMember
from ixion.clients.consumer.served_member import ServedMember
from ixion.clients.consumer.settings import ConsumerSettings
from ixion.clients.membership import Membership
from ixion.clients.metadata import TopicPartition


class RebalanceListener:
    """What to do when partitions come and go; called within poll. Override what you need."""

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """They are ours, and nothing of them has been read yet: the place to seek."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """They are about to be given up: the last chance to commit."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """They were taken away; others may read them already, so that a commit would fail."""


class GroupPart:
    def __init__(
        self, bootstrap: str, group: str, topics: Sequence[str], listener: RebalanceListener, settings: ConsumerSettings
    ) -> None:
        self.listener = listener
        is_served = settings.group_protocol == "consumer"  # the coordinator assigns, step by step
        self.is_cooperative = is_served or set(settings.partition_assignment_strategy) == {COOPERATIVE}
        self._group = group
        self._cluster = Cluster(
            bootstrap, client_id=settings.client_id, timeout_s=settings.default_api_timeout_ms / 1000
        )
        self._member: GroupMember = (
            ServedMember(
                self._cluster,
                group,
                topics,
                rebalance_s=settings.max_poll_interval_ms / 1000,
                instance_id=settings.group_instance_id,
                assignor=settings.group_remote_assignor,
            )
            if is_served
            else Membership(
                self._cluster,
                group,
                topics,
                session_s=settings.session_timeout_ms / 1000,
                rebalance_s=settings.max_poll_interval_ms / 1000,
                instance_id=settings.group_instance_id,
                strategies=settings.partition_assignment_strategy,
            )
        )
        self._heartbeats = Heartbeats(self._member, settings.max_poll_interval_ms / 1000)
        self._heartbeats.start()

    def subscribe(self, topics: Sequence[str], listener: RebalanceListener) -> None:
        self.listener = listener
        with self._heartbeats.lock:
            self._member.subscribe(topics)

    def polled(self) -> None:
        """The caller is back; a fault that the heartbeats met is raised here."""
        self._heartbeats.polled(time.monotonic())
        fault, self._heartbeats.fault = self._heartbeats.fault, None
        if fault is not None:
            raise fault

    @property
    def must_join(self) -> bool:
        return self._member.must_rejoin

    @property
    def has_lost(self) -> bool:
        """Whether the group has given this member up, and its partitions to others."""
        return self._heartbeats.expired or self._member.generation < 0

    def join(self, owned: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Take part in a rebalance; what is assigned."""
        with self._heartbeats.lock:
            self._heartbeats.expired = False
            self._heartbeats.polled(time.monotonic())
            places = sorted(self._member.join(owned))
            self._heartbeats.polled(time.monotonic())
        return places

    def join_again(self) -> None:
        """Soon, because a partition was given up that another member waits for."""
        with self._heartbeats.lock:
            self._member.must_rejoin = True

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._heartbeats.lock:
            if not self._member.commit(offsets):
                raise CommitFailedError(self._group)

    def close(self) -> None:
        self._heartbeats.stop()
        self._member.leave()
        self._cluster.close()
