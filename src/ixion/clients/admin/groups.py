"""Groups: list, describe and delete them, or remove single members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ixion.clients.admin.plan import Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import GROUP, Spread, every_node, fault_of, spread, to_coordinators
from ixion.clients.assignment import read_assignment
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k15_describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from ixion.language.protocol.messages.k69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from ixion.language.protocol.messages.k69_consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey


class GroupListing(NamedTuple):
    group: str
    state: str
    kind: str  # classic, consumer, share, streams; empty if the broker is too old to say
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
    kind: str = "classic"


def list_groups(call: Call, *, states: Iterable[str] = (), kinds: Iterable[str] = ()) -> Plan[list[GroupListing]]:
    """All groups of all brokers, by name; or only those in these states or of these kinds."""
    in_states, of_kinds = tuple(states), tuple(kinds)
    request = ListGroupsRequest(states_filter=in_states, types_filter=of_kinds)
    plain = ListGroupsRequest()

    def make(version: int) -> Struct:
        if (in_states and version < 4) or (of_kinds and version < 5):
            text = "the broker is too old to list groups by state or kind"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
        return request if in_states or of_kinds else plain

    answers = yield from every_node(
        call,
        ApiKey.LIST_GROUPS,
        make,
        ListGroupsResponse,
        lambda answer: fault_of(answer.error_code, None, "the groups of a broker"),
    )
    return sorted(
        GroupListing(group.group_id, group.group_state, group.group_type.lower(), group.protocol_type)
        for answer in answers.values()
        for group in answer.groups
    )


def describe_groups(call: Call, names: Iterable[str]) -> Plan[Results[str, GroupDescription]]:
    """State and members. GROUP_ID_NOT_FOUND for a group that does not exist."""
    wanted = list(dict.fromkeys(names))
    results: Results[str, GroupDescription] = yield from describe_consumer_groups(call, wanted)
    others = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    classic = [name for name, fault in results.faults.items() if fault.code in others]
    if classic:
        found = yield from describe_classic_groups(call, classic)
        for name in classic:
            del results.faults[name]
        results.done.update(found.done)
        results.faults.update(found.faults)
    absent = [name for name, fault in results.faults.items() if fault.code == ErrorCode.GROUP_ID_NOT_FOUND]
    if absent:
        from ixion.clients.admin.share_groups import describe_share_groups
        from ixion.clients.admin.streams_groups import describe_streams_groups

        for describe in (describe_share_groups, describe_streams_groups):
            others_of = yield from describe(call, [name for name in absent if name in results.faults])
            for name in others_of.done:
                del results.faults[name]
            results.done.update(others_of.done)
    return results


def describe_consumer_groups(call: Call, names: Iterable[str]) -> Plan[Results[str, GroupDescription]]:
    """Groups of the consumer protocol (KIP-848)."""

    def make(some: list[str], _: int) -> Struct:
        return ConsumerGroupDescribeRequest(group_ids=tuple(some), include_authorized_operations=False)

    def read(answer: Struct) -> dict[str, GroupDescription | KafkaError]:
        assert isinstance(answer, ConsumerGroupDescribeResponse)
        return {
            each.group_id: fault_of(each.error_code, each.error_message, f"group {each.group_id!r}") or of_served(each)
            for each in answer.groups
        }

    how = Spread(ApiKey.CONSUMER_GROUP_DESCRIBE)
    return (yield from spread(call, how, names, to_coordinators(GROUP), make, read))


def describe_classic_groups(call: Call, names: Iterable[str]) -> Plan[Results[str, GroupDescription]]:
    """Groups of the classic protocol, whose leader assigns."""

    def make(some: list[str], _: int) -> Struct:
        return DescribeGroupsRequest(groups=tuple(some))

    def read(answer: Struct) -> dict[str, GroupDescription | KafkaError]:
        assert isinstance(answer, DescribeGroupsResponse)
        return {each.group_id: read_classic(each) for each in answer.groups}

    return (yield from spread(call, Spread(ApiKey.DESCRIBE_GROUPS), names, to_coordinators(GROUP), make, read))


def read_classic(found: DescribedGroup) -> GroupDescription | KafkaError:
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (found.error_code == 0 and found.group_state == "Dead"):
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {found.group_id!r}")
    fault = fault_of(found.error_code, found.error_message, f"group {found.group_id!r}")
    if fault is not None:
        return fault
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
    return GroupDescription(found.group_id, found.group_state, found.protocol_data, members)


def of_served(found: DescribedConsumerGroup) -> GroupDescription:
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
    return GroupDescription(found.group_id, found.group_state, found.assignor_name, members, "consumer")


def delete_groups(call: Call, names: Iterable[str]) -> Plan[Results[str, None]]:
    """Delete groups without members, and their offsets."""
    from ixion.language.protocol.messages.k42_delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

    def make(some: list[str], _: int) -> Struct:
        return DeleteGroupsRequest(groups_names=tuple(some))

    def read(answer: Struct) -> dict[str, KafkaError | None]:
        assert isinstance(answer, DeleteGroupsResponse)
        return {
            each.group_id: fault_of(each.error_code, each.error_message, f"group {each.group_id!r}")
            for each in answer.results
        }

    how = Spread(ApiKey.DELETE_GROUPS, already=ErrorCode.GROUP_ID_NOT_FOUND)
    results: Results[str, None] = yield from spread(
        call, how, names, to_coordinators(GROUP), make, read, lambda _: None
    )
    return results


def remove_members(
    call: Call, group: str, members: Iterable[str] | None = None, *, reason: str | None = None
) -> Plan[Results[str, None]]:
    """Remove static members, by their instance ids, or all members of a classic group if none is named."""
    from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

    if members is None:
        described = yield from describe_groups(call, [group])
        identities = {
            member.instance_id or member.member_id: MemberIdentity(
                member_id="" if member.instance_id else member.member_id,
                group_instance_id=member.instance_id,
                reason=reason,
            )
            for member in described[group].members
        }
    else:
        identities = {name: MemberIdentity(member_id="", group_instance_id=name, reason=reason) for name in members}

    def make(_: list[str], version: int) -> Struct:
        del version
        return LeaveGroupRequest(group_id=group, members=tuple(identities.values()))

    def read(answer: Struct) -> dict[str, dict[str, KafkaError | None] | KafkaError]:
        assert isinstance(answer, LeaveGroupResponse)
        fault = fault_of(answer.error_code, None, f"group {group!r}")
        if fault is not None:
            return {group: fault}
        found = {
            each.group_instance_id or each.member_id: fault_of(
                each.error_code, None, f"member {each.group_instance_id or each.member_id!r} of group {group!r}"
            )
            for each in answer.members
        }
        return {group: found}

    results: Results[str, None] = Results()
    if identities:
        how = Spread(ApiKey.LEAVE_GROUP, oldest=3)
        asked = yield from spread(call, how, [group], to_coordinators(GROUP), make, read)
        for name, fault in asked[group].items():
            if fault is None:
                results.done[name] = None
            else:
                results.faults[name] = fault
    return results
