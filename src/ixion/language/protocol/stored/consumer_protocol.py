"""Messages between the consumers of a classic group: subscriptions to the leader, assignments from it."""

from ixion.language.protocol.notation import Bytes, Int32, String, Struct, TopicName, field


class TopicPartition(Struct):
    topic: TopicName
    partitions: tuple[Int32, ...]


class ConsumerProtocolSubscription(Struct, within="0-3"):
    topics: tuple[String, ...]
    user_data: Bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = field("1+", ignorable=True)
    generation_id: Int32 = field("2+", default=-1, ignorable=True)
    rack_id: String | None = field("3+", default=None, ignorable=True)


class ConsumerProtocolAssignment(Struct, within="0-3"):
    assigned_partitions: tuple[TopicPartition, ...]
    user_data: Bytes | None = None
