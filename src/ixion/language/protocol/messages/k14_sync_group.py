"""The leader of a classic group hands out the assignment; the others fetch theirs."""

from ixion.language.protocol.notation import Bytes, GroupId, Int16, Int32, String, Struct, field


class SyncGroupRequestAssignment(Struct):
    member_id: String
    assignment: Bytes


class SyncGroupRequest(Struct):
    group_id: GroupId
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = field("3+", default=None)
    protocol_type: String | None = field("5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", default=None, ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...]


class SyncGroupResponse(Struct):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16
    protocol_type: String | None = field("5+", default=None, ignorable=True)
    protocol_name: String | None = field("5+", default=None, ignorable=True)
    assignment: Bytes
