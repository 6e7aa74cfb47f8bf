"""SyncGroup, Heartbeat and LeaveGroup: the requests of members that have joined."""

# This module is compiled: see setup.py.

from __future__ import annotations

from ixion.broker.coordinators.group.classic.answers import sync_error, synced
from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.member import RespondSync
from ixion.broker.coordinators.group.classic.reasons import member_reason
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.classic.rules import check_generation, check_member, check_sync
from ixion.broker.coordinators.group.classic.states import COMPLETING_REBALANCE, EMPTY, PREPARING_REBALANCE
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest


def sync(rebalance: Rebalance, group: ClassicGroup, request: SyncGroupRequest, respond: RespondSync) -> None:
    """The leader sends the assignments of all members; the other members wait until it has."""
    code = check_sync(
        group,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
    )
    if code is ErrorCode.NONE and group.state is EMPTY:
        code = ErrorCode.UNKNOWN_MEMBER_ID
    elif code is ErrorCode.NONE and group.state is PREPARING_REBALANCE:
        code = ErrorCode.REBALANCE_IN_PROGRESS
    if code is not ErrorCode.NONE:
        respond(sync_error(code))
        return
    member = group.members[request.member_id]
    group.pending_sync.discard(member.member_id)
    if group.state is COMPLETING_REBALANCE:
        # If a sync already waits, the client has given up that connection; otherwise it would not sync again.
        if member.awaits_sync:
            group.answer_sync(member, sync_error(ErrorCode.REBALANCE_IN_PROGRESS))
        member.respond_sync = respond
        rebalance.check_sync(group)
        if group.leader_id == member.member_id:
            rebalance.assign(group, {each.member_id: each.assignment for each in request.assignments})
    else:
        rebalance.check_sync(group)
        respond(synced(group.protocol_type, group.protocol_name, member))
        rebalance.heartbeats.renew(group, member)


def heartbeat(rebalance: Rebalance, group: ClassicGroup, request: HeartbeatRequest) -> ErrorCode:
    code = check_generation(group, request.member_id, request.group_instance_id, request.generation_id)
    if code is not ErrorCode.NONE:
        return code
    if group.state is EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    rebalance.heartbeats.renew(group, group.members[request.member_id])
    return ErrorCode.REBALANCE_IN_PROGRESS if group.state is PREPARING_REBALANCE else ErrorCode.NONE


def leave(rebalance: Rebalance, group: ClassicGroup, leaving: MemberIdentity) -> ErrorCode:
    """Remove a member that leaves. An administrator may name only the instance, without a member id."""
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if not member_id:
        current = None if instance_id is None else group.static_members.get(instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = current
    elif member_id in group.pending_members:
        rebalance.remove_pending(group, member_id)
        return ErrorCode.NONE
    code = check_member(group, member_id, instance_id)
    if code is ErrorCode.NONE:
        rebalance.remove(group, group.members[member_id], member_reason(member_id, "leaves", leaving.reason))
    return code
