"""The state and the members of consumer groups (KIP-848)."""

from ixion.language.protocol.notation import Bool, GroupId, Int8, Int16, Int32, String, Struct, TopicName, Uuid, field


class ConsumerGroupDescribeRequest(Struct):
    group_ids: tuple[GroupId, ...]
    include_authorized_operations: Bool


class TopicPartitions(Struct):
    topic_id: Uuid
    topic_name: TopicName
    partitions: tuple[Int32, ...]


class Assignment(Struct):
    topic_partitions: tuple[TopicPartitions, ...]


class Member(Struct):
    member_id: String
    instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: tuple[TopicName, ...]
    subscribed_topic_regex: String | None = None
    assignment: Assignment
    target_assignment: Assignment
    member_type: Int8 = field("1+", default=-1, ignorable=True)


class DescribedGroup(Struct):
    error_code: Int16
    error_message: String | None = None
    group_id: GroupId
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: tuple[Member, ...]
    authorized_operations: Int32 = -(2**31)


class ConsumerGroupDescribeResponse(Struct):
    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...]
