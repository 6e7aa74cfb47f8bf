"""A member joins a group, or rejoins in a rebalance, with the protocols it supports."""

from ixion.language.protocol.notation import Bool, Bytes, GroupId, Int16, Int32, String, Struct, field


class JoinGroupRequestProtocol(Struct):
    name: String
    metadata: Bytes


class JoinGroupRequest(Struct):
    group_id: GroupId
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = field("1+", default=-1, ignorable=True)
    member_id: String
    group_instance_id: String | None = field("5+", default=None)
    protocol_type: String
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: String | None = field("8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    member_id: String
    group_instance_id: String | None = field("5+", default=None, ignorable=True)
    metadata: Bytes


class JoinGroupResponse(Struct):
    throttle_time_ms: Int32 = field("2+", ignorable=True)
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: String | None = field("7+", default=None, ignorable=True)
    protocol_name: String | None = field(nullable="7+")
    leader: String
    skip_assignment: Bool = field("9+", default=False)
    member_id: String
    members: tuple[JoinGroupResponseMember, ...]
