"""Which offsets partitions have at a time and at their ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.deadline import Deadline
from ixion.clients.leaders import ask_leaders
from ixion.clients.metadata import TopicPartition, by_topic
from ixion.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.protocol.registry import ApiKey

LATEST: Final = -1  # in place of a time: the high watermark, or the last stable offset for read_committed
EARLIEST: Final = -2  # the log start
OFFSETS_FROM: Final = 2  # the first version that answers with one offset and knows isolation levels


def list_offsets(
    cluster: Cluster, partitions: Iterable[TopicPartition], time_ms: int, *, read_committed: bool = False
) -> dict[TopicPartition, int]:
    """The first offset whose record is of that time or later, or one of the ends; -1 where no record is that young."""

    def ask(broker: Connection, led: list[TopicPartition], deadline: Deadline) -> dict[TopicPartition, tuple[int, int]]:
        topics = tuple(
            ListOffsetsTopic(
                name=topic,
                partitions=tuple(ListOffsetsPartition(partition_index=index, timestamp=time_ms) for index in indexes),
            )
            for topic, indexes in by_topic(led).items()
        )
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=int(read_committed), topics=topics, timeout_ms=deadline.left_ms
        )
        version = broker.version(ApiKey.LIST_OFFSETS, oldest=OFFSETS_FROM)
        answer = broker.call(ApiKey.LIST_OFFSETS, request, ListOffsetsResponse, deadline, version)
        return {
            TopicPartition(topic.name, found.partition_index): (found.error_code, found.offset)
            for topic in answer.topics
            for found in topic.partitions
        }

    return ask_leaders(cluster, "listing offsets", partitions, ask)
