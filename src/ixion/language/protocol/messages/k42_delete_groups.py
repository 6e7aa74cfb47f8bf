"""Delete groups that have no members."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, String, Struct, field


class DeleteGroupsRequest(Struct):
    groups_names: tuple[GroupId, ...]


class DeletableGroupResult(Struct):
    group_id: GroupId
    error_code: Int16
    error_message: String | None = field("3+", default=None, ignorable=True)


class DeleteGroupsResponse(Struct):
    throttle_time_ms: Int32 = 0
    results: tuple[DeletableGroupResult, ...]
