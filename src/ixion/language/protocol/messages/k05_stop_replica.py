"""The controller tells a broker to stop replicas, and whether to delete them."""

from ixion.language.protocol.notation import Bool, BrokerId, Int16, Int32, Int64, Struct, TopicName, field


class StopReplicaPartitionV0(Struct):
    topic_name: TopicName
    partition_index: Int32


class StopReplicaTopicV1(Struct):
    name: TopicName
    partition_indexes: tuple[Int32, ...]


class StopReplicaPartitionState(Struct):
    partition_index: Int32
    leader_epoch: Int32 = -1
    delete_partition: Bool


class StopReplicaTopicState(Struct):
    topic_name: TopicName
    partition_states: tuple[StopReplicaPartitionState, ...]


class StopReplicaRequest(Struct):
    controller_id: BrokerId
    is_k_raft_controller: Bool = field("4+", default=False)
    controller_epoch: Int32
    broker_epoch: Int64 = field("1+", default=-1, ignorable=True)
    delete_partitions: Bool = field("0-2")
    ungrouped_partitions: tuple[StopReplicaPartitionV0, ...] = field("0")
    topics: tuple[StopReplicaTopicV1, ...] = field("1-2")
    topic_states: tuple[StopReplicaTopicState, ...] = field("3+")


class StopReplicaPartitionError(Struct):
    topic_name: TopicName
    partition_index: Int32
    error_code: Int16


class StopReplicaResponse(Struct):
    error_code: Int16
    partition_errors: tuple[StopReplicaPartitionError, ...]
