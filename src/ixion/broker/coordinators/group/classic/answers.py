"""Builds the responses of the classic protocol from a group."""

# This module is compiled: see setup.py.

from __future__ import annotations

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.member import ClassicMember
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from ixion.language.protocol.messages.k14_sync_group import SyncGroupResponse
from ixion.timer.turns import Steps, finish


def join_error(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None, leader="", members=())


def joined(
    group: ClassicGroup, member_id: str, *, leader: str | None = None, skip_assignment: bool = False
) -> JoinGroupResponse:
    """The present generation. Only the leader gets the list of members.

    A member that gets another `leader` than the real one does not assign.
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
        members=tuple(finish(members_of(group))) if named == member_id else (),
    )


def joined_leader(group: ClassicGroup, member_id: str) -> Steps[JoinGroupResponse]:
    """As `joined`, for the leader: its list of members may be long, so it is built in steps."""
    members = yield from members_of(group)
    return JoinGroupResponse(
        error_code=ErrorCode.NONE,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=member_id,
        member_id=member_id,
        members=tuple(members),
    )


def members_of(group: ClassicGroup) -> Steps[list[JoinGroupResponseMember]]:
    name = group.protocol_name
    assert name is not None
    members: list[JoinGroupResponseMember] = []
    for member in list(group.members.values()):
        members.append(
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata(name)
            )
        )
        yield
    return members


def sync_error(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code, assignment=b"")


def synced(protocol_type: str | None, protocol_name: str | None, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=ErrorCode.NONE,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignment=member.assignment,
    )
