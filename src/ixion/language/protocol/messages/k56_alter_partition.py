"""A partition leader asks the controller to change the ISR."""

from ixion.language.protocol.notation import BrokerId, Int8, Int16, Int32, Int64, Struct, Uuid, field


class BrokerState(Struct):
    broker_id: BrokerId
    broker_epoch: Int64 = -1


class PartitionData(Struct):
    partition_index: Int32
    leader_epoch: Int32
    new_isr: tuple[BrokerId, ...] = field("2")
    new_isr_with_epochs: tuple[BrokerState, ...] = field("3+")
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32


class TopicData(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class AlterPartitionRequest(Struct):
    broker_id: BrokerId
    broker_epoch: Int64 = -1
    topics: tuple[TopicData, ...]


class ResponsePartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    leader_id: BrokerId
    leader_epoch: Int32
    isr: tuple[BrokerId, ...]
    leader_recovery_state: Int8 = 0
    partition_epoch: Int32


class ResponseTopicData(Struct):
    topic_id: Uuid
    partitions: tuple[ResponsePartitionData, ...]


class AlterPartitionResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    topics: tuple[ResponseTopicData, ...]
