"""Set the start offsets of a share group."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, Int64, String, Struct, TopicName, Uuid


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: Int32
    start_offset: Int64


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: TopicName
    partitions: tuple[AlterShareGroupOffsetsRequestPartition, ...]


class AlterShareGroupOffsetsRequest(Struct):
    group_id: GroupId
    topics: tuple[AlterShareGroupOffsetsRequestTopic, ...]


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: TopicName
    topic_id: Uuid
    partitions: tuple[AlterShareGroupOffsetsResponsePartition, ...]


class AlterShareGroupOffsetsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    responses: tuple[AlterShareGroupOffsetsResponseTopic, ...]
