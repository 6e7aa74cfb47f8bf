"""The requests of a controller to a broker, as an interface: over a socket or by a call.

The controller knows neither logs nor replicas. If its broker is alone, the controller also needs to know the state of
its disks (`OwnDisks`), because no other broker holds the replicas meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from ixion.broker.metadata.image import PartitionImage, TopicImage
from ixion.language.model.topic_partition import TopicPartition

# Imported when they are needed: a broker that starts without topics needs few of these tables.
if TYPE_CHECKING:
    from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
    from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest, StopReplicaResponse
    from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest, UpdateMetadataResponse

LogEnds = dict[TopicPartition, tuple[int, int]]  # the last leader epoch in the log, and the next offset


class Door(Protocol):
    """Carries out the requests of a controller on a broker."""

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse: ...

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse: ...

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse: ...

    def log_ends(self, keys: Sequence[TopicPartition]) -> LogEnds: ...


class OwnDoor(Door, Protocol):
    """The door of a broker alone: a failed log directory is reported to its controller by a call."""

    async def directory_failed(self, path: str) -> list[TopicPartition]:
        """Take the replicas of a log directory offline. Returns their partitions."""
        ...


class OwnDisks(Protocol):
    """The disks of a broker alone."""

    @property
    def offline(self) -> Collection[TopicPartition]:
        """Partitions that the broker should lead, but whose logs it could not open."""
        ...

    def check_room(self) -> None:
        """KafkaError if the disks have no room for another log."""

    def set_strays_aside(self, topics: Iterable[TopicImage]) -> None:
        """Rename logs without a topic, or of an earlier topic of that name. Blocks."""

    def open_again(
        self, waiting: Sequence[tuple[TopicImage, PartitionImage]]
    ) -> list[tuple[TopicImage, PartitionImage]]:
        """Try again to open logs that could not be opened. Returns those that are open now. Blocks."""
        ...
