"""The leader of a partition reads the state of its share partitions."""

from ixion.language.protocol.notation import GroupId, Int8, Int16, Int32, Int64, String, Struct, Uuid, field


class PartitionData(Struct):
    partition: Int32
    leader_epoch: Int32


class ReadStateData(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class ReadShareGroupStateRequest(Struct):
    group_id: GroupId
    topics: tuple[ReadStateData, ...]


class StateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16
    due_ms: Int64 = field(default=0, tag=5000)


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: String | None = None
    state_epoch: Int32
    start_offset: Int64
    state_batches: tuple[StateBatch, ...]


class ReadStateResult(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class ReadShareGroupStateResponse(Struct):
    results: tuple[ReadStateResult, ...]
