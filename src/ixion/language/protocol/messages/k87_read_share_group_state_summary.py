"""The group coordinator reads the start offsets of share partitions."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, Int64, String, Struct, Uuid, field


class PartitionData(Struct):
    partition: Int32
    leader_epoch: Int32


class ReadStateSummaryData(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class ReadShareGroupStateSummaryRequest(Struct):
    group_id: GroupId
    topics: tuple[ReadStateSummaryData, ...]


class PartitionResult(Struct):
    partition: Int32
    error_code: Int16
    error_message: String | None = None
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = field("1+", default=-1, ignorable=True)


class ReadStateSummaryResult(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionResult, ...]


class ReadShareGroupStateSummaryResponse(Struct):
    results: tuple[ReadStateSummaryResult, ...]
