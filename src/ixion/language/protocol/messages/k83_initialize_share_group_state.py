"""The group coordinator has the share coordinator create the state of share partitions."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, Int64, String, Struct, Uuid


class PartitionData(Struct):
    partition: Int32
    state_epoch: Int32
    start_offset: Int64


class InitializeStateData(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class InitializeShareGroupStateRequest(Struct):
    group_id: GroupId
    topics: tuple[InitializeStateData, ...]


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: String | None = None


class InitializeStateResult(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class InitializeShareGroupStateResponse(Struct):
    results: tuple[InitializeStateResult, ...]
