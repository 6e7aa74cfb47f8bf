"""The group coordinator, created when it is first needed.

It is a third of all the code that a broker imports. Without it a start is 30 ms shorter and the process 3 MB smaller. A
broker needs it when it leads a partition of `__consumer_offsets` (at the start if there is one already), or when a
client sends a request about a group.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final

from ixion.broker.replica.internal_topic import GROUP_OFFSETS

FEATURE: Final = "group.version"
SHARE_FEATURE: Final = "share.version"
STREAMS_FEATURE: Final = "streams.version"

if TYPE_CHECKING:
    from ixion.broker.coordinators.group.coordinator import GroupCoordinator
    from ixion.broker.startup.parts import Parts


class LateGroups:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._made: GroupCoordinator | None = None
        self._stopped = False

    @property
    def made(self) -> GroupCoordinator | None:
        """The coordinator; None if it was not needed yet."""
        return self._made

    def import_code(self) -> None:
        """Import what `get` needs. On a worker thread, because it takes 30 to 100 ms."""
        import_module("ixion.broker.coordinators.group.coordinator")

    def prepare_to_lead(self, topic: str) -> None:
        """As `import_code`, if this broker is about to lead a partition of `__consumer_offsets`."""
        if topic == GROUP_OFFSETS:
            self.import_code()

    def get(self) -> GroupCoordinator:
        groups = self._made
        if groups is None:
            from ixion.broker.coordinators.group.coordinator import GroupCoordinator
            from ixion.broker.coordinators.group.topics import ImageTopics

            parts = self._parts
            groups = self._made = GroupCoordinator(
                parts.internal_topics[GROUP_OFFSETS],
                timer=parts.timer,
                clock_ms=parts.clock_ms,
                config=parts.config,
                topics=ImageTopics(parts.image),
                group_config=lambda group_id: parts.image.group_configs.get(group_id, {}),
                version=lambda: parts.image.features.get(FEATURE, 0),
                lease=self._lease,
                share_states=parts.shares.router,
                share_version=lambda: parts.image.features.get(SHARE_FEATURE, 0),
                streams_version=lambda: parts.image.features.get(STREAMS_FEATURE, 0),
            )
            if not self._stopped:
                groups.start()
        return groups

    def _lease(self) -> int | None:
        session = self._parts.session
        return session.session_id if session.is_leased else None

    def follow(self, topic: str, partition: int, leader_epoch: int) -> None:
        if topic == GROUP_OFFSETS:
            if leader_epoch >= 0:
                self.get().on_elected(partition, leader_epoch)
            elif self._made is not None:  # a broker that only follows needs no coordinator
                self._made.on_resigned(partition)

    def on_topics_deleted(self, names: Iterable[str]) -> None:
        if self._made is not None:  # else there are no offsets
            self._made.on_topics_deleted(names)

    def on_transaction_marker(self, partition: int, producer_id: int, committed: bool) -> None:
        if self._made is not None:  # else this broker does not lead the partition
            self._made.on_transaction_marker(partition, producer_id, committed)

    def stop(self) -> None:
        self._stopped = True
        if self._made is not None:
            self._made.stop()
