"""A consumer's part in a classic group: joins within poll, heartbeats beside it, commits, the listener.

Rebalances are eager: before a join all partitions are given up, after it those that were assigned begin where the group
has committed. The member has a connection of its own, because heartbeats go out while the consumer waits for records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from ixion.clients.cluster import Cluster
from ixion.clients.consumer.errors import CommitFailedError
from ixion.clients.consumer.heartbeats import Heartbeats
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
        self._group = group
        self._cluster = Cluster(
            bootstrap, client_id=settings.client_id, timeout_s=settings.default_api_timeout_ms / 1000
        )
        self._member = Membership(
            self._cluster,
            group,
            topics,
            session_s=settings.session_timeout_ms / 1000,
            rebalance_s=settings.max_poll_interval_ms / 1000,
            instance_id=settings.group_instance_id,
            strategies=settings.partition_assignment_strategy,
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

    def give_up(self, held: Sequence[TopicPartition], commit: Callable[[], None]) -> None:
        """Before a join; `commit` is called if it can still succeed."""
        lost = self._heartbeats.expired or self._member.generation < 0
        if held and lost:
            self.listener.on_lost(held)
        elif held:
            commit()
            self.listener.on_revoked(held)

    def join(self) -> list[TopicPartition]:
        """Take part in a rebalance; what is assigned."""
        with self._heartbeats.lock:
            self._heartbeats.expired = False
            self._heartbeats.polled(time.monotonic())
            places = sorted(self._member.join())
            self._heartbeats.polled(time.monotonic())
        return places

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._heartbeats.lock:
            if not self._member.commit(offsets):
                raise CommitFailedError(self._group)

    def close(self) -> None:
        self._heartbeats.stop()
        self._member.leave()
        self._cluster.close()
