"""Members leave a group."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, String, Struct, field


class MemberIdentity(Struct):
    member_id: String
    group_instance_id: String | None = None
    reason: String | None = field("5+", default=None, ignorable=True)


class LeaveGroupRequest(Struct):
    group_id: GroupId
    member_id: String = field("0-2")
    members: tuple[MemberIdentity, ...] = field("3+")


class MemberResponse(Struct):
    member_id: String
    group_instance_id: String | None
    error_code: Int16


class LeaveGroupResponse(Struct):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16
    members: tuple[MemberResponse, ...] = field("3+")
