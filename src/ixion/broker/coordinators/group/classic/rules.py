"""Checks of requests to a classic group. Each returns an error code (NONE: allowed) and changes nothing.

The order of the checks is part of the protocol: a fenced static member must get FENCED_INSTANCE_ID, on which it stops,
and not ILLEGAL_GENERATION, on which it would rejoin and fence its successor.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

from ixion.broker.coordinators.group.classic.group import ClassicGroup
from ixion.broker.coordinators.group.classic.member import Protocols, size_of
from ixion.broker.coordinators.group.classic.states import DEAD, EMPTY, PREPARING_REBALANCE
from ixion.language.model.errors import ErrorCode

STORED_BYTES_PER_MEMBER: Final = 70  # at least: an id that the broker generated, an address, four numbers
PROTOCOLS_PER_MEMBER: Final = 8  # only one of them is stored; clients send two or three


def check_member(group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
    """The member is in the group, and no other member has taken its instance id."""
    if instance_id is not None:
        current = group.static_members.get(instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if current != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return ErrorCode.NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def check_generation(group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    """For a heartbeat, and first of all for a sync or a commit: the member knows the present generation."""
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    code = check_member(group, member_id, instance_id)
    if code is ErrorCode.NONE and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return code


def check_sync(
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    protocol_type: str | None,
    protocol_name: str | None,
) -> ErrorCode:
    """As a heartbeat, and the protocol of the request is that of the generation."""
    code = check_generation(group, member_id, instance_id, generation)
    if code is not ErrorCode.NONE:
        return code
    if protocol_type is not None and protocol_type != group.protocol_type:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if protocol_name is not None and protocol_name != group.protocol_name:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def check_commit(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, transactional: bool
) -> ErrorCode:
    """Members commit in their generation; outsiders (generation -1, no member id) only while the group has no members.

    Old transactional clients name neither member nor generation; the producer's epoch is what fences them.
    """
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation < 0 and group.state is EMPTY:
        return ErrorCode.NONE
    if generation >= 0 or member_id or instance_id is not None:
        return check_generation(group, member_id, instance_id, generation)
    if not transactional and group.state is not EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE


def has_memory_for(group: ClassicGroup, member_id: str, protocols: Protocols, max_bytes: int) -> bool:
    """Whether the number of members, and the metadata of all of them, stay within bounds.

    A group is stored as one record of at most `max_bytes`. A larger group can never become stable and would only hold
    memory. (Kafka notices once the leader has assigned, and then rebalances again, without end.)
    """
    known = group.members.get(member_id)
    others = group.metadata_bytes - (0 if known is None else size_of(known.protocols))
    if known is None and (len(group.members) + 1) * STORED_BYTES_PER_MEMBER > max_bytes:
        return False
    return others + size_of(protocols) <= PROTOCOLS_PER_MEMBER * max_bytes


def has_room_for(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    """Whether the group may take in this member ("" is a new one) without passing group.max.size.

    While a rebalance gathers members, only those that have joined this time count: the others may be dead. So a group
    that was loaded over its limit sheds the members that join last.
    """
    if group.state in (EMPTY, DEAD):
        return True
    if group.state is PREPARING_REBALANCE:
        member = group.members.get(member_id)
        if member is not None and member.awaits_join:
            return True
        return group.awaiting_join < max_size
    return member_id in group.members or len(group.members) < max_size
