"""Streams groups (KIP-1071), described as other groups are: a member has the partitions that its active tasks read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ixion.clients.admin.groups import GroupDescription, GroupMember
from ixion.clients.admin.plan import Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import GROUP, Spread, fault_of, spread, to_coordinators
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.messages.k89_streams_group_describe import (
    DescribedGroup,
    Member,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

ASSIGNOR = "sticky"


def describe_streams_groups(call: Call, names: Iterable[str]) -> Plan[Results[str, GroupDescription]]:
    def make(some: list[str], _: int) -> Struct:
        return StreamsGroupDescribeRequest(group_ids=tuple(some), include_authorized_operations=False)

    def read(answer: Struct) -> dict[str, GroupDescription | KafkaError]:
        assert isinstance(answer, StreamsGroupDescribeResponse)
        return {
            each.group_id: fault_of(each.error_code, each.error_message, f"group {each.group_id!r}") or described(each)
            for each in answer.groups
        }

    how = Spread(ApiKey.STREAMS_GROUP_DESCRIBE)
    return (yield from spread(call, how, names, to_coordinators(GROUP), make, read))


def described(found: DescribedGroup) -> GroupDescription:
    sources = dict(sources_of(found))
    members = tuple(
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            tuple(sorted(partitions_of(member, sources))),
        )
        for member in found.members
    )
    return GroupDescription(found.group_id, found.group_state, ASSIGNOR, members, "streams")


def sources_of(found: DescribedGroup) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The topics that each subtopology reads."""
    subtopologies = found.topology.subtopologies if found.topology is not None else None
    for each in subtopologies or ():
        yield each.subtopology_id, (*each.source_topics, *(topic.name for topic in each.repartition_source_topics))


def partitions_of(member: Member, sources: dict[str, tuple[str, ...]]) -> Iterator[TopicPartition]:
    for task in member.assignment.active_tasks:
        topics = sources.get(task.subtopology_id, ())
        if len(topics) == 1:  # of several, some may have fewer partitions than there are tasks: the answer does not say
            for number in task.partitions:
                yield TopicPartition(topics[0], number)
