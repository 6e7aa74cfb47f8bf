"""The leader of a partition stores changes of its share partitions."""

from ixion.language.protocol.notation import GroupId, Int8, Int16, Int32, Int64, String, Struct, Uuid, field


class StateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16
    due_ms: Int64 = field(default=0, tag=5000)


class PartitionData(Struct):
    partition: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)
    state_batches: tuple[StateBatch, ...]


class WriteStateData(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class WriteShareGroupStateRequest(Struct):
    group_id: GroupId
    topics: tuple[WriteStateData, ...]


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: String | None = None


class WriteStateResult(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class WriteShareGroupStateResponse(Struct):
    results: tuple[WriteStateResult, ...]
