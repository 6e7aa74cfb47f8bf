"""The group coordinator has the share coordinator delete the state of share partitions."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, String, Struct, Uuid


class PartitionData(Struct):
    partition: Int32


class DeleteStateData(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class DeleteShareGroupStateRequest(Struct):
    group_id: GroupId
    topics: tuple[DeleteStateData, ...]


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: String | None = None


class DeleteStateResult(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class DeleteShareGroupStateResponse(Struct):
    results: tuple[DeleteStateResult, ...]
