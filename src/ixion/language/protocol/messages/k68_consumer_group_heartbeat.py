"""A member of a consumer group shows that it is alive, and exchanges subscription and assignment (KIP-848)."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, String, Struct, TopicName, Uuid, field


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class ConsumerGroupHeartbeatRequest(Struct):
    group_id: GroupId
    member_id: String
    member_epoch: Int32
    instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: tuple[TopicName, ...] | None = None
    subscribed_topic_regex: String | None = field("1+", default=None)
    server_assignor: String | None = None
    topic_partitions: tuple[TopicPartitions, ...] | None = None


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...]


class ConsumerGroupHeartbeatResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = None
