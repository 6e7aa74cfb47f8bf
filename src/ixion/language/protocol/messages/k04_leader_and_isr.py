"""The controller tells a broker which partitions it leads or follows."""

from ixion.language.protocol.notation import (
    Bool,
    BrokerId,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    TopicName,
    Uuid,
    field,
)


class LeaderAndIsrPartitionState(Struct):
    topic_name: TopicName = field("0-1", ignorable=True)
    partition_index: Int32
    controller_epoch: Int32
    leader: BrokerId
    leader_epoch: Int32
    isr: tuple[BrokerId, ...]
    partition_epoch: Int32
    replicas: tuple[BrokerId, ...]
    adding_replicas: tuple[BrokerId, ...] = field("3+", ignorable=True)
    removing_replicas: tuple[BrokerId, ...] = field("3+", ignorable=True)
    is_new: Bool = field("1+", default=False, ignorable=True)
    leader_recovery_state: Int8 = field("6+", default=0)


class LeaderAndIsrTopicState(Struct):
    topic_name: TopicName
    topic_id: Uuid = field("5+", ignorable=True)
    partition_states: tuple[LeaderAndIsrPartitionState, ...]


class LeaderAndIsrLiveLeader(Struct):
    broker_id: BrokerId
    host_name: String
    port: Int32


class LeaderAndIsrRequest(Struct):
    controller_id: BrokerId
    is_k_raft_controller: Bool = field("7+", default=False)
    controller_epoch: Int32
    broker_epoch: Int64 = field("2+", default=-1, ignorable=True)
    type: Int8 = field("5+")
    ungrouped_partition_states: tuple[LeaderAndIsrPartitionState, ...] = field("0-1")
    topic_states: tuple[LeaderAndIsrTopicState, ...] = field("2+")
    live_leaders: tuple[LeaderAndIsrLiveLeader, ...]


class LeaderAndIsrPartitionError(Struct):
    topic_name: TopicName = field("0-4", ignorable=True)
    partition_index: Int32
    error_code: Int16


class LeaderAndIsrTopicError(Struct):
    topic_id: Uuid
    partition_errors: tuple[LeaderAndIsrPartitionError, ...]


class LeaderAndIsrResponse(Struct):
    error_code: Int16
    partition_errors: tuple[LeaderAndIsrPartitionError, ...] = field("0-4")
    topics: tuple[LeaderAndIsrTopicError, ...] = field("5+")
