"""The replica that a consumer reads from (KIP-392): one in its own rack, if that has the requested offset.

The leader decides, by replica.selector.class. It names a follower in the answer, without records, and the consumer
reads there for a while; a follower that does not have the offset sends the consumer back. Of several followers in the
rack, the one with the highest offset is taken. A consumer without a rack, or without a follower there, stays with the
leader.
"""

from __future__ import annotations

from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.partition import Partition

NOT_ANOTHER = -1


class RackAwareSelector:
    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    def select(self, partition: Partition, rack: str, offset: int) -> int:
        """The broker to read from; -1: the leader."""
        if self._rack_of(partition.node_id) == rack:
            return NOT_ANOTHER
        found, furthest = NOT_ANOTHER, -1
        for follower in partition.followers.values():
            if (
                follower.broker_id in partition.isr
                and follower.log_start <= offset <= follower.end_offset
                and follower.end_offset > furthest
                and self._rack_of(follower.broker_id) == rack
            ):
                found, furthest = follower.broker_id, follower.end_offset
        return found

    def _rack_of(self, broker_id: int) -> str | None:
        broker = self._image.brokers.get(broker_id)
        return None if broker is None else broker.rack
