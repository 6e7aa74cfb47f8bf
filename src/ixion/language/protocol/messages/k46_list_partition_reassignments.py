"""The reassignments of replicas that are under way."""

from ixion.language.protocol.notation import BrokerId, Int16, Int32, String, Struct, TopicName


class ListPartitionReassignmentsTopics(Struct):
    name: TopicName
    partition_indexes: tuple[Int32, ...]


class ListPartitionReassignmentsRequest(Struct):
    timeout_ms: Int32 = 60000
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None


class OngoingPartitionReassignment(Struct):
    partition_index: Int32
    replicas: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...]
    removing_replicas: tuple[BrokerId, ...]


class OngoingTopicReassignment(Struct):
    name: TopicName
    partitions: tuple[OngoingPartitionReassignment, ...]


class ListPartitionReassignmentsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    topics: tuple[OngoingTopicReassignment, ...]
