"""A member of a share group shows that it is alive, and exchanges subscription and assignment."""

from ixion.language.protocol.notation import GroupId, Int16, Int32, String, Struct, TopicName, Uuid


class ShareGroupHeartbeatRequest(Struct):
    group_id: GroupId
    member_id: String
    member_epoch: Int32
    rack_id: String | None = None
    subscribed_topic_names: tuple[TopicName, ...] | None = None


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...]


class ShareGroupHeartbeatResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = None
