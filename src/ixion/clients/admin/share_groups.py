"""Share groups: their members, and the offsets at which their partitions begin.

A share group has no committed offset. A partition begins at its start offset: everything before is over, and of what
comes after, some records may be over, too. Lag is how many are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ixion.clients.admin.group_offsets import of_partitions
from ixion.clients.admin.groups import GroupDescription, GroupMember
from ixion.clients.admin.plan import Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import GROUP, Spread, by_topic, fault_of, spread, to_coordinators
from ixion.clients.core.checks import check_long, check_place, check_topic
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey


class ShareOffset(NamedTuple):
    """Where a partition of a share group begins, and how many records are not over; -1 for what is not known yet."""

    start_offset: int
    lag: int = -1
    leader_epoch: int = -1


def describe_share_groups(call: Call, names: Iterable[str]) -> Plan[Results[str, GroupDescription]]:
    """State and members. GROUP_ID_NOT_FOUND for a group that does not exist or is of another type."""
    from ixion.language.protocol.messages.k77_share_group_describe import (
        ShareGroupDescribeRequest,
        ShareGroupDescribeResponse,
    )

    def make(some: list[str], _: int) -> Struct:
        return ShareGroupDescribeRequest(group_ids=tuple(some), include_authorized_operations=False)

    def read(answer: Struct) -> dict[str, GroupDescription | KafkaError]:
        assert isinstance(answer, ShareGroupDescribeResponse)
        found: dict[str, GroupDescription | KafkaError] = {}
        for group in answer.groups:
            fault = fault_of(group.error_code, group.error_message, f"group {group.group_id!r}")
            members = tuple(
                GroupMember(
                    member.member_id,
                    None,
                    member.client_id,
                    member.client_host,
                    tuple(
                        TopicPartition(topic.topic_name, number)
                        for topic in member.assignment.topic_partitions
                        for number in topic.partitions
                    ),
                )
                for member in group.members
            )
            found[group.group_id] = fault or GroupDescription(
                group.group_id, group.group_state, group.assignor_name, members, "share"
            )
        return found

    return (yield from spread(call, Spread(ApiKey.SHARE_GROUP_DESCRIBE), names, to_coordinators(GROUP), make, read))


def list_share_group_offsets(
    call: Call, groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None]
) -> Plan[Results[str, dict[TopicPartition, ShareOffset]]]:
    """Where each group stands, in all its partitions or in some. A partition with an error of its own is left out."""
    from ixion.language.protocol.messages.k90_describe_share_group_offsets import (
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
        DescribeShareGroupOffsetsRequestTopic,
        DescribeShareGroupOffsetsResponse,
    )

    wanted: dict[str, Iterable[TopicPartition] | None]
    wanted = dict(groups) if isinstance(groups, Mapping) else dict.fromkeys(groups)

    def topics(some: Iterable[TopicPartition] | None) -> tuple[DescribeShareGroupOffsetsRequestTopic, ...] | None:
        if some is None:
            return None
        return tuple(
            DescribeShareGroupOffsetsRequestTopic(topic_name=topic, partitions=tuple(numbers))
            for topic, numbers in by_topic(check_place(each) for each in some).items()
        )

    asked = {group: topics(some) for group, some in wanted.items()}

    def make(some: list[str], _: int) -> Struct:
        return DescribeShareGroupOffsetsRequest(
            groups=tuple(DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=asked[group]) for group in some)
        )

    def read(answer: Struct) -> dict[str, dict[TopicPartition, ShareOffset] | KafkaError]:
        assert isinstance(answer, DescribeShareGroupOffsetsResponse)
        found: dict[str, dict[TopicPartition, ShareOffset] | KafkaError] = {}
        for group in answer.groups:
            fault = fault_of(group.error_code, group.error_message, f"group {group.group_id!r}")
            found[group.group_id] = fault or {
                TopicPartition(topic.topic_name, each.partition_index): ShareOffset(
                    each.start_offset, each.lag, each.leader_epoch
                )
                for topic in group.topics
                for each in topic.partitions
                if each.error_code == 0
            }
        return found

    how = Spread(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS)
    return (yield from spread(call, how, wanted, to_coordinators(GROUP), make, read))


def alter_share_group_offsets(
    call: Call, group: str, offsets: Mapping[TopicPartition, int]
) -> Plan[Results[TopicPartition, None]]:
    """Set where partitions of a group without members begin. Creates the group if it does not exist."""
    from ixion.language.protocol.messages.k91_alter_share_group_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestPartition,
        AlterShareGroupOffsetsRequestTopic,
        AlterShareGroupOffsetsResponse,
    )

    wanted = {check_place(place): check_long("an offset", offset) for place, offset in offsets.items()}
    request = AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=tuple(
            AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=tuple(
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=number, start_offset=wanted[TopicPartition(topic, number)]
                    )
                    for number in numbers
                ),
            )
            for topic, numbers in by_topic(wanted).items()
        ),
    )

    def read(answer: Struct) -> dict[str, dict[TopicPartition, KafkaError | None] | KafkaError]:
        assert isinstance(answer, AlterShareGroupOffsetsResponse)
        fault = fault_of(answer.error_code, answer.error_message, f"group {group!r}")
        if fault is not None:
            return {group: fault}
        found = {
            (place := TopicPartition(topic.topic_name, each.partition_index)): fault_of(
                each.error_code, each.error_message, f"{place} of group {group!r}"
            )
            for topic in answer.responses
            for each in topic.partitions
        }
        return {group: found}

    how = Spread(ApiKey.ALTER_SHARE_GROUP_OFFSETS)
    return (yield from of_partitions(call, how, group, wanted, request, read))


def delete_share_group_offsets(call: Call, group: str, topics: Iterable[str]) -> Plan[Results[str, None]]:
    """Forget where a group without members stands in these topics: it begins anew there."""
    from ixion.language.protocol.messages.k92_delete_share_group_offsets import (
        DeleteShareGroupOffsetsRequest,
        DeleteShareGroupOffsetsRequestTopic,
        DeleteShareGroupOffsetsResponse,
    )

    wanted = list(dict.fromkeys(topics))
    for topic in wanted:
        check_topic(topic)
    request = DeleteShareGroupOffsetsRequest(
        group_id=group, topics=tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in wanted)
    )

    def read(answer: Struct) -> dict[str, dict[str, KafkaError | None] | KafkaError]:
        assert isinstance(answer, DeleteShareGroupOffsetsResponse)
        fault = fault_of(answer.error_code, answer.error_message, f"group {group!r}")
        if fault is not None:
            return {group: fault}
        return {
            group: {
                each.topic_name: fault_of(
                    each.error_code, each.error_message, f"topic {each.topic_name!r} of group {group!r}"
                )
                for each in answer.responses
            }
        }

    results: Results[str, None] = Results()
    how = Spread(ApiKey.DELETE_SHARE_GROUP_OFFSETS)
    asked = yield from spread(call, how, [group], to_coordinators(GROUP), lambda *_: request, read)
    for topic in wanted:
        fault = asked.faults.get(group) or asked.done.get(group, {}).get(topic)
        if fault is None:
            results.done[topic] = None
        else:
            results.faults[topic] = fault
    return results
