"""Add partitions to topics."""

from ixion.language.protocol.notation import Bool, BrokerId, Int16, Int32, String, Struct, TopicName


class CreatePartitionsAssignment(Struct):
    broker_ids: tuple[BrokerId, ...]


class CreatePartitionsTopic(Struct):
    name: TopicName
    count: Int32
    assignments: tuple[CreatePartitionsAssignment, ...] | None


class CreatePartitionsRequest(Struct):
    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: Int32
    validate_only: Bool


class CreatePartitionsTopicResult(Struct):
    name: TopicName
    error_code: Int16
    error_message: String | None = None


class CreatePartitionsResponse(Struct):
    throttle_time_ms: Int32 = 0
    results: tuple[CreatePartitionsTopicResult, ...]
