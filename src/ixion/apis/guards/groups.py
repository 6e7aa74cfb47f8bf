"""Rules of the APIs about groups and their offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from ixion.acl.numbers import DELETE, DESCRIBE, GROUP, READ, TOPIC, TRANSACTIONAL_ID
from ixion.acl.rights import Rights
from ixion.apis.call import Call
from ixion.apis.guards.guard import Guard
from ixion.apis.guards.shapes import Amend, appended, filtered, refused_topics, sorted_out, trim_topics
from ixion.apis.topic_ids import OFFSET_COMMIT_BY_ID_SINCE, OFFSET_FETCH_BY_ID_SINCE
from ixion.metadata.image import ClusterImage
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ixion.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from ixion.protocol.messages.k10_find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ixion.protocol.messages.k15_describe_groups import DescribedGroup, DescribeGroupsRequest
from ixion.protocol.messages.k42_delete_groups import DeletableGroupResult, DeleteGroupsRequest
from ixion.protocol.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from ixion.protocol.messages.k68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ixion.protocol.messages.k69_consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ixion.protocol.messages.k69_consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps

NO_GROUP: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_TOPIC: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
SEVERAL_SINCE: Final = 8  # OffsetFetch: several groups
MANY_KEYS_SINCE: Final = 4  # FindCoordinator
PARTITIONS: Final = "partition_indexes"


def in_group(refuse: Callable[[ErrorCode, int], Struct]) -> Guard:
    """Members need READ on their group. `refuse(code, version)` makes the response of a refusal."""

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        group_id: str = cast(Any, call.body).group_id
        yield
        return None if rights.may(READ, GROUP, group_id) else refuse(NO_GROUP, call.version)

    return guard


def offset_commit(image: ClusterImage) -> Guard:
    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        request = cast(OffsetCommitRequest, call.body)
        if not rights.may(READ, GROUP, request.group_id):
            topics = yield from refused_topics(request.topics, committed(NO_GROUP), commit_topic)
            return OffsetCommitResponse(topics=cast(tuple[OffsetCommitResponseTopic, ...], tuple(topics)))

        def keep(topic: Any) -> bool:
            name = topic.name
            if call.version >= OFFSET_COMMIT_BY_ID_SINCE:
                known = image.ids.get(topic.topic_id)
                if known is None:
                    return True
                name = known.name
            return rights.may(READ, TOPIC, name)

        yield from trim_topics(call, keep, committed(NO_TOPIC), commit_topic)
        return None

    return guard


def committed(code: ErrorCode) -> Callable[[Any], OffsetCommitResponsePartition]:
    return lambda each: OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)


def commit_topic(topic: Any, lines: tuple[OffsetCommitResponsePartition, ...]) -> Struct:
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=lines)


def offset_fetch(image: ClusterImage) -> Guard:
    """DESCRIBE on the groups and topics. If all topics are requested, those without the right are left out."""

    def old(call: Call, rights: Rights, request: OffsetFetchRequest) -> Steps[Struct | None]:
        if not rights.may(DESCRIBE, GROUP, request.group_id):
            topics: list[Struct] = []
            if call.version < 2:  # the response has no code of its own
                topics = yield from refused_topics(request.topics or (), fetched(NO_GROUP), fetch_topic, PARTITIONS)
            return OffsetFetchResponse(
                topics=cast(tuple[OffsetFetchResponseTopic, ...], tuple(topics)), error_code=NO_GROUP
            )
        if request.topics is None:
            call.amend = filtered("topics", lambda topic: rights.sees(DESCRIBE, TOPIC, topic.name))
        else:
            yield from trim_topics(
                call, lambda topic: rights.may(DESCRIBE, TOPIC, topic.name), fetched(NO_TOPIC), fetch_topic, PARTITIONS
            )
        return None

    def sees(topic: Any, rights: Rights, by_id: bool) -> bool:
        name = topic.name
        if by_id:
            known = image.ids.get(topic.topic_id)
            if known is None:
                return True
            name = known.name
        return rights.may(DESCRIBE, TOPIC, name)

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        request = cast(OffsetFetchRequest, call.body)
        if call.version < SEVERAL_SINCE:
            return (yield from old(call, rights, request))
        by_id = call.version >= OFFSET_FETCH_BY_ID_SINCE
        kept: list[OffsetFetchRequestGroup] = []
        refused: list[OffsetFetchResponseGroup] = []
        topics_of: dict[str, list[Struct]] = {}
        for group in request.groups:
            yield
            if not rights.may(DESCRIBE, GROUP, group.group_id):
                refused.append(OffsetFetchResponseGroup(group_id=group.group_id, topics=(), error_code=NO_GROUP))
                continue
            if group.topics is not None:
                some, others = yield from sorted_out(group.topics, lambda topic: sees(topic, rights, by_id))
                if others:
                    lines = yield from refused_topics(others, fetched_many(NO_TOPIC), fetch_topics, PARTITIONS)
                    topics_of[group.group_id] = lines
                    group = group.replace(topics=tuple(some))
            kept.append(group)
        call.narrow(request.replace(groups=tuple(kept)))
        call.amend = with_refused(rights, request, topics_of, refused)
        return None

    return guard


def with_refused(
    rights: Rights,
    request: OffsetFetchRequest,
    topics_of: dict[str, list[Struct]],
    refused: list[OffsetFetchResponseGroup],
) -> Amend:
    all_topics = {group.group_id for group in request.groups if group.topics is None}

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(OffsetFetchResponse, body)
        groups: list[OffsetFetchResponseGroup] = []
        for group in answer.groups:
            yield
            if group.group_id in all_topics:
                shown, _ = yield from sorted_out(group.topics, lambda topic: rights.sees(DESCRIBE, TOPIC, topic.name))
                group = group.replace(topics=tuple(shown))
            elif group.group_id in topics_of and group.error_code == ErrorCode.NONE:
                group = group.replace(topics=(*group.topics, *topics_of[group.group_id]))
            groups.append(group)
        return answer.replace(groups=(*groups, *refused))

    return amend


def fetched(code: ErrorCode) -> Callable[[int], OffsetFetchResponsePartition]:
    return lambda number: OffsetFetchResponsePartition(
        partition_index=number, committed_offset=-1, metadata="", error_code=code
    )


def fetch_topic(topic: OffsetFetchRequestTopic, lines: tuple[OffsetFetchResponsePartition, ...]) -> Struct:
    return OffsetFetchResponseTopic(name=topic.name, partitions=lines)


def fetched_many(code: ErrorCode) -> Callable[[int], OffsetFetchResponsePartitions]:
    return lambda number: OffsetFetchResponsePartitions(
        partition_index=number, committed_offset=-1, metadata="", error_code=code
    )


def fetch_topics(topic: Any, lines: tuple[OffsetFetchResponsePartitions, ...]) -> Struct:
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=lines)


def find_coordinator(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on the group or on the transactional id."""
    request = cast(FindCoordinatorRequest, call.body)
    kinds = {0: (GROUP, NO_GROUP), 1: (TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)}
    if request.key_type not in kinds:
        return None
    kind, code = kinds[request.key_type]
    if call.version < MANY_KEYS_SINCE:
        if rights.may(DESCRIBE, kind, request.key):
            return None
        return FindCoordinatorResponse(error_code=code, error_message=code.explanation, node_id=-1, host="", port=-1)
    kept, others = yield from sorted_out(request.coordinator_keys, lambda key: rights.may(DESCRIBE, kind, key))
    if others:
        refused = [
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=code.explanation)
            for key in others
        ]
        if not kept:
            return FindCoordinatorResponse(coordinators=tuple(refused))
        call.narrow(request.replace(coordinator_keys=tuple(kept)))
        call.amend = appended("coordinators", refused)
    return None


def describe_groups(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(DescribeGroupsRequest, call.body)
    kept, others = yield from sorted_out(request.groups, lambda group: rights.may(DESCRIBE, GROUP, group))
    if others:
        call.narrow(request.replace(groups=tuple(kept)))
        refused = [
            DescribedGroup(
                error_code=NO_GROUP, group_id=group, group_state="", protocol_type="", protocol_data="", members=()
            )
            for group in others
        ]
        call.amend = appended("groups", refused)
    return None


def list_groups(call: Call, rights: Rights) -> Steps[Struct | None]:
    """The groups that the client may describe; all of them with DESCRIBE on the cluster."""
    yield
    if not rights.sees_in_cluster(DESCRIBE):
        call.amend = filtered("groups", lambda group: rights.sees(DESCRIBE, GROUP, group.group_id))
    return None


def delete_groups(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(DeleteGroupsRequest, call.body)
    kept, others = yield from sorted_out(request.groups_names, lambda group: rights.may(DELETE, GROUP, group))
    if others:
        call.narrow(request.replace(groups_names=tuple(kept)))
        call.amend = appended(
            "results", [DeletableGroupResult(group_id=group, error_code=NO_GROUP) for group in others]
        )
    return None


def offset_delete(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DELETE on the group, READ on each topic."""
    request = cast(OffsetDeleteRequest, call.body)
    if not rights.may(DELETE, GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=NO_GROUP, topics=())
    yield from trim_topics(
        call,
        lambda topic: rights.may(READ, TOPIC, topic.name),
        lambda each: OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=NO_TOPIC),
        lambda topic, lines: OffsetDeleteResponseTopic(name=topic.name, partitions=lines),
    )
    return None


def consumer_group_heartbeat(call: Call, rights: Rights) -> Steps[Struct | None]:
    """READ on the group, DESCRIBE on each named topic. A pattern matches only topics that the member may describe."""
    request = cast(ConsumerGroupHeartbeatRequest, call.body)
    if not rights.may(READ, GROUP, request.group_id):
        return refused_heartbeat(NO_GROUP)
    for name in request.subscribed_topic_names or ():
        if not rights.may(DESCRIBE, TOPIC, name):
            return refused_heartbeat(NO_TOPIC)
        yield
    return None


def refused_heartbeat(code: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=code, error_message=code.explanation, member_epoch=0, heartbeat_interval_ms=0
    )


def consumer_group_describe(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DESCRIBE on the group and on every topic of its members; otherwise the whole group is refused."""
    request = cast(ConsumerGroupDescribeRequest, call.body)
    kept, others = yield from sorted_out(request.group_ids, lambda group: rights.may(DESCRIBE, GROUP, group))
    call.narrow(request.replace(group_ids=tuple(kept)))
    refused = [refused_group(group, NO_GROUP) for group in others]

    def amend(body: Struct) -> Steps[Struct]:
        answer = cast(ConsumerGroupDescribeResponse, body)
        groups: list[DescribedConsumerGroup] = []
        for group in answer.groups:
            for name in (yield from topics_of_group(group)):
                if not rights.sees(DESCRIBE, TOPIC, name):
                    group = refused_group(group.group_id, NO_TOPIC)
                    break
            groups.append(group)
            yield
        return answer.replace(groups=(*groups, *refused))

    call.amend = amend
    return None


def topics_of_group(group: DescribedConsumerGroup) -> Steps[set[str]]:
    names: set[str] = set()
    for member in group.members:
        names.update(member.subscribed_topic_names)
        for assignment in (member.assignment, member.target_assignment):
            names.update(assigned(assignment))
        yield
    return names


def assigned(assignment: Assignment) -> list[str]:
    return [each.topic_name for each in assignment.topic_partitions]


def refused_group(group_id: str, code: ErrorCode) -> DescribedConsumerGroup:
    return DescribedConsumerGroup(
        error_code=code,
        error_message=code.explanation,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )
