"""Requests of share groups over a real connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ixion.language.protocol.messages import k90_describe_share_group_offsets as k90
from ixion.language.protocol.messages import k91_alter_share_group_offsets as k91
from ixion.language.protocol.messages import k92_delete_share_group_offsets as k92
from ixion.language.protocol.messages.k42_delete_groups import DeleteGroupsRequest
from ixion.language.protocol.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest
from ixion.language.protocol.messages.k77_share_group_describe import ShareGroupDescribeRequest
from ixion.language.protocol.messages.k84_read_share_group_state import PartitionData as ReadPart
from ixion.language.protocol.messages.k84_read_share_group_state import ReadShareGroupStateRequest, ReadStateData
from ixion.language.protocol.messages.k85_write_share_group_state import PartitionData as WritePart
from ixion.language.protocol.messages.k85_write_share_group_state import (
    StateBatch,
    WriteShareGroupStateRequest,
    WriteStateData,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw


def beat(raw: Raw, group: str, member: str = "m", epoch: int = 0, topics: Sequence[str] | None = None) -> Any:
    named = ("t",) if topics is None and epoch == 0 else topics
    request = ShareGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=None if named is None else tuple(named),
    )
    return raw.ask(ApiKey.SHARE_GROUP_HEARTBEAT, 1, request)


def partitions(answer: Any) -> list[tuple[int, ...]] | None:
    return None if answer.assignment is None else [each.partitions for each in answer.assignment.topic_partitions]


def describe(raw: Raw, group: str) -> Any:
    request = ShareGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
    return raw.ask(ApiKey.SHARE_GROUP_DESCRIBE, 1, request).groups[0]


def offsets(raw: Raw, group: str, topics: Sequence[tuple[str, tuple[int, ...]]] | None = None) -> Any:
    named = None
    if topics is not None:
        named = tuple(
            k90.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=numbers) for name, numbers in topics
        )
    wanted = k90.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=named)
    request = k90.DescribeShareGroupOffsetsRequest(groups=(wanted,))
    return raw.ask(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request).groups[0]


def alter(raw: Raw, group: str, topic: str, starts: dict[int, int]) -> Any:
    parts = tuple(
        k91.AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=start)
        for number, start in starts.items()
    )
    named = k91.AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=parts)
    request = k91.AlterShareGroupOffsetsRequest(group_id=group, topics=(named,))
    return raw.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, request)


def delete_offsets(raw: Raw, group: str, *topics: str) -> Any:
    named = tuple(k92.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics)
    request = k92.DeleteShareGroupOffsetsRequest(group_id=group, topics=named)
    return raw.ask(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, request)


def delete_group(raw: Raw, group: str) -> int:
    code: int = raw.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=(group,))).results[0].error_code
    return code


def read_state(raw: Raw, group: str, topic_id: bytes, partition: int, leader_epoch: int = -1) -> Any:
    part = ReadPart(partition=partition, leader_epoch=leader_epoch)
    topic = ReadStateData(topic_id=topic_id, partitions=(part,))
    request = ReadShareGroupStateRequest(group_id=group, topics=(topic,))
    return raw.ask(ApiKey.READ_SHARE_GROUP_STATE, 0, request).results[0].partitions[0]


def write_state(
    raw: Raw,
    group: str,
    topic_id: bytes,
    partition: int,
    *batches: StateBatch,
    start: int,
    epoch: int = 2,
    done: int = 0,
) -> int:
    part = WritePart(
        partition=partition,
        state_epoch=epoch,
        leader_epoch=0,
        start_offset=start,
        delivery_complete_count=done,
        state_batches=batches,
    )
    topic = WriteStateData(topic_id=topic_id, partitions=(part,))
    request = WriteShareGroupStateRequest(group_id=group, topics=(topic,))
    code: int = raw.ask(ApiKey.WRITE_SHARE_GROUP_STATE, 1, request).results[0].partitions[0].error_code
    return code
