"""Delete the records of partitions before given offsets."""

from ixion.language.protocol.notation import Int16, Int32, Int64, Struct, TopicName


class DeleteRecordsPartition(Struct):
    partition_index: Int32
    offset: Int64


class DeleteRecordsTopic(Struct):
    name: TopicName
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Struct):
    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32


class DeleteRecordsPartitionResult(Struct):
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


class DeleteRecordsTopicResult(Struct):
    name: TopicName
    partitions: tuple[DeleteRecordsPartitionResult, ...]


class DeleteRecordsResponse(Struct):
    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...]
