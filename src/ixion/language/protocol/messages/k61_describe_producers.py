"""The producers that are active on partitions."""

from ixion.language.protocol.notation import Int16, Int32, Int64, ProducerId, String, Struct, TopicName


class TopicRequest(Struct):
    name: TopicName
    partition_indexes: tuple[Int32, ...]


class DescribeProducersRequest(Struct):
    topics: tuple[TopicRequest, ...]


class ProducerState(Struct):
    producer_id: ProducerId
    producer_epoch: Int32
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    active_producers: tuple[ProducerState, ...]


class TopicResponse(Struct):
    name: TopicName
    partitions: tuple[PartitionResponse, ...]


class DescribeProducersResponse(Struct):
    throttle_time_ms: Int32 = 0
    topics: tuple[TopicResponse, ...]
