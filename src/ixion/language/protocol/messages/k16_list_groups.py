"""The groups a broker coordinates."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, String, Struct, field


class ListGroupsRequest(Struct):
    states_filter: tuple[String, ...] = field("4+")
    types_filter: tuple[String, ...] = field("5+")


class ListedGroup(Struct):
    group_id: GroupId
    protocol_type: String
    group_state: String = field("4+", ignorable=True)
    group_type: String = field("5+", ignorable=True)


class ListGroupsResponse(Struct):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16
    groups: tuple[ListedGroup, ...]
