"""How far a group has read, as its coordinator keeps it, and how to say otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ixion.clients.cluster import Cluster
from ixion.clients.coordinator import group_coordinator
from ixion.clients.deadline import Deadline
from ixion.clients.faults import check, only
from ixion.clients.metadata import TopicPartition, by_topic
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ixion.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from ixion.protocol.registry import ApiKey

LAST_BY_NAME: Final = 9  # version 10 of both names topics by id only
FIRST_OF_MANY: Final = 8  # OffsetFetch asks for several groups from then on


def fetch_offsets(cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    """All offsets that the group has committed; none if there is no such group."""

    def ask(within: Deadline) -> dict[TopicPartition, int]:
        broker = group_coordinator(cluster, group, within)
        version = broker.version(ApiKey.OFFSET_FETCH, oldest=FIRST_OF_MANY, newest=LAST_BY_NAME)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))
        answer = broker.call(ApiKey.OFFSET_FETCH, request, OffsetFetchResponse, within, version)
        found = only(answer.groups, f"group {group!r}")
        check(found.error_code, None, f"group {group!r}")
        return {
            TopicPartition(topic.name, partition.partition_index): partition.committed_offset
            for topic in found.topics
            for partition in topic.partitions
            if partition.error_code == 0 and partition.committed_offset >= 0
        }

    return cluster.attempt(f"reading the offsets of group {group!r}", ask)


def commit_request(
    group: str,
    offsets: Mapping[TopicPartition, int],
    generation: int = -1,
    member_id: str = "",
    instance_id: str | None = None,
) -> tuple[OffsetCommitRequest, int]:
    """The request, and the newest version that it can be sent in. Without a member it is for a group that has none."""
    topics = tuple(
        OffsetCommitRequestTopic(
            name=topic,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offsets[TopicPartition(topic, number)],
                    committed_metadata="",
                )
                for number in numbers
            ),
        )
        for topic, numbers in by_topic(offsets).items()
    )
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=topics,
    )
    return request, LAST_BY_NAME


def commit_offsets(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Set the offsets of a group that has no members; makes the group if there is none."""

    def ask(within: Deadline) -> None:
        broker = group_coordinator(cluster, group, within)
        request, newest = commit_request(group, offsets)
        version = broker.version(ApiKey.OFFSET_COMMIT, newest=newest)
        answer = broker.call(ApiKey.OFFSET_COMMIT, request, OffsetCommitResponse, within, version)
        for topic in answer.topics:
            for result in topic.partitions:
                if result.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH):
                    text = f"group {group!r} has members; stop them first, they would overwrite the offsets"
                    raise KafkaError(ErrorCode.NON_EMPTY_GROUP, text)
                check(result.error_code, None, f"{topic.name}-{result.partition_index} of group {group!r}")

    cluster.attempt(f"setting the offsets of group {group!r}", ask)
