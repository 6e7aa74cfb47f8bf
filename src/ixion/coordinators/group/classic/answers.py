"""The answers of the classic protocol, as a group gives them."""

from __future__ import annotations

from ixion.coordinators.group.classic.group import ClassicGroup
from ixion.coordinators.group.classic.member import ClassicMember
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from ixion.protocol.messages.k14_sync_group import SyncGroupResponse


def join_error(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None, leader="", members=())


def joined(
    group: ClassicGroup, member_id: str, *, leader: str | None = None, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The present generation. The leader, and nobody else, is told who the members are.

    Another `leader` than the real one keeps a member from assigning.
    """
    named = (group.leader_id if leader is None else leader) or ""
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=named,
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members_of(group) if named == member_id else (),
    )


def members_of(group: ClassicGroup) -> tuple[JoinGroupResponseMember, ...]:
    name = group.protocol_name
    assert name is not None
    return tuple(
        JoinGroupResponseMember(
            member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(name)
        )
        for member in group.members.values()
    )


def sync_error(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
