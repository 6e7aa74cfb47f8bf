"""The state and the members of classic groups."""

from ixion.language.protocol.notation import Bool, Bytes, GroupId, Int16, Int32, String, Struct, field


class DescribeGroupsRequest(Struct):
    groups: tuple[GroupId, ...]
    include_authorized_operations: Bool = field("3+")


class DescribedGroupMember(Struct):
    member_id: String
    group_instance_id: String | None = field("4+", default=None, ignorable=True)
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


class DescribedGroup(Struct):
    error_code: Int16
    error_message: String | None = field("6+", default=None)
    group_id: GroupId
    group_state: String
    protocol_type: String
    protocol_data: String
    members: tuple[DescribedGroupMember, ...]
    authorized_operations: Int32 = field("3+", default=-(2**31))


class DescribeGroupsResponse(Struct):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    groups: tuple[DescribedGroup, ...]
