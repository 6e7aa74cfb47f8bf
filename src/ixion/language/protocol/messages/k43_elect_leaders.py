"""Elect the preferred replica, or in an unclean election any replica, as leader of partitions."""

from ixion.language.protocol.notation import Int8, Int16, Int32, String, Struct, TopicName, field


class TopicPartitions(Struct):
    topic: TopicName
    partitions: tuple[Int32, ...]


class ElectLeadersRequest(Struct):
    election_type: Int8 = field("1+")
    topic_partitions: tuple[TopicPartitions, ...] | None
    timeout_ms: Int32 = 60000


class PartitionResult(Struct):
    partition_id: Int32
    error_code: Int16
    error_message: String | None


class ReplicaElectionResult(Struct):
    topic: TopicName
    partition_result: tuple[PartitionResult, ...]


class ElectLeadersResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = field("1+")
    replica_election_results: tuple[ReplicaElectionResult, ...]
