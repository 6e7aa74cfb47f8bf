"""Groups: which there are, who is in them, and the end of them."""

from __future__ import annotations

from typing import NamedTuple

from ixion.clients.cluster import Cluster
from ixion.clients.coordinator import group_coordinator
from ixion.clients.deadline import Deadline
from ixion.clients.faults import check, only
from ixion.clients.metadata import TopicPartition
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol import storage
from ixion.protocol.flaws import DecodeError
from ixion.protocol.messages.k15_describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from ixion.protocol.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from ixion.protocol.messages.k42_delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ixion.protocol.messages.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ixion.protocol.registry import ApiKey
from ixion.protocol.stored.consumer_protocol import ConsumerProtocolAssignment


class GroupListing(NamedTuple):
    group: str
    state: str
    kind: str  # classic, consumer, share; empty if the broker is too old to say
    protocol: str


class GroupMember(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    group: str
    state: str
    assignor: str
    members: tuple[GroupMember, ...]


def list_groups(cluster: Cluster) -> list[GroupListing]:
    """All groups of all brokers, by name."""

    def ask(within: Deadline) -> list[GroupListing]:
        found = []
        for node in cluster.nodes(within):
            answer = cluster.node(node.node_id, within).call(
                ApiKey.LIST_GROUPS, ListGroupsRequest(), ListGroupsResponse, within
            )
            check(answer.error_code, None, f"the groups of broker {node.node_id}")
            found += [
                GroupListing(group.group_id, group.group_state, group.group_type.lower(), group.protocol_type)
                for group in answer.groups
            ]
        return sorted(found)

    return cluster.attempt("listing groups", ask)


def describe_group(cluster: Cluster, group: str) -> GroupDescription:
    """Its state and members. KafkaError (GROUP_ID_NOT_FOUND) if there is none."""

    def ask(within: Deadline) -> GroupDescription:
        return describe_consumer(cluster, group, within) or describe_classic(cluster, group, within)

    return cluster.attempt(f"describing group {group!r}", ask)


def describe_consumer(cluster: Cluster, group: str, deadline: Deadline) -> GroupDescription | None:
    """A group of the consumer protocol (KIP-848); None if it is none, or the broker knows no such groups."""
    broker = group_coordinator(cluster, group, deadline)
    if ApiKey.CONSUMER_GROUP_DESCRIBE not in broker.versions:
        return None
    request = ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
    answer = broker.call(ApiKey.CONSUMER_GROUP_DESCRIBE, request, ConsumerGroupDescribeResponse, deadline)
    found = only(answer.groups, f"group {group!r}")
    if found.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return None
    check(found.error_code, found.error_message, f"group {group!r}")
    members = tuple(
        GroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            tuple(
                TopicPartition(topic.topic_name, number)
                for topic in member.assignment.topic_partitions
                for number in topic.partitions
            ),
        )
        for member in found.members
    )
    return GroupDescription(group, found.group_state, found.assignor_name, members)


def describe_classic(cluster: Cluster, group: str, deadline: Deadline) -> GroupDescription:
    broker = group_coordinator(cluster, group, deadline)
    request = DescribeGroupsRequest(groups=(group,))
    answer = broker.call(ApiKey.DESCRIBE_GROUPS, request, DescribeGroupsResponse, deadline)
    found = only(answer.groups, f"group {group!r}")
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND or found.group_state == "Dead":
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {group!r}")
    check(found.error_code, found.error_message, f"group {group!r}")
    members = tuple(
        GroupMember(
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            read_assignment(member.member_assignment) if found.protocol_type == "consumer" else (),
        )
        for member in found.members
    )
    return GroupDescription(group, found.group_state, found.protocol_data, members)


def read_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """What the leader of a classic group gave to a member; nothing while it is rebalancing."""
    if not data:
        return ()
    try:
        assignment = storage.decode(ConsumerProtocolAssignment, bytes(data))
    except DecodeError:
        return ()  # a client's own format
    return tuple(
        TopicPartition(topic.topic, number) for topic in assignment.assigned_partitions for number in topic.partitions
    )


def delete_group(cluster: Cluster, group: str) -> None:
    """Forget a group without members, and its offsets."""

    def ask(within: Deadline) -> None:
        broker = group_coordinator(cluster, group, within)
        request = DeleteGroupsRequest(groups_names=(group,))
        answer = broker.call(ApiKey.DELETE_GROUPS, request, DeleteGroupsResponse, within)
        for result in answer.results:
            check(result.error_code, None, f"group {group!r}")

    cluster.attempt(f"deleting group {group!r}", ask)


def check_empty(cluster: Cluster, group: str) -> None:
    """KafkaError (NON_EMPTY_GROUP) if it has members, who would go on from where they are. It need not exist."""
    try:
        found = describe_group(cluster, group)
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return
    if found.members:
        text = f"group {group!r} is {found.state.lower()} with {len(found.members)} members; stop them first"
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, text)
