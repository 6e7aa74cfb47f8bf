"""A member of a classic group shows that it is alive."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, String, Struct, field


class HeartbeatRequest(Struct):
    group_id: GroupId
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = field("3+", default=None)


class HeartbeatResponse(Struct):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16
