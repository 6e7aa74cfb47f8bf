"""The controller sends a broker the metadata of the cluster: brokers, partitions, leaders."""

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


class UpdateMetadataPartitionState(Struct):
    topic_name: TopicName = field("0-4", ignorable=True)
    partition_index: Int32
    controller_epoch: Int32
    leader: BrokerId
    leader_epoch: Int32
    isr: tuple[BrokerId, ...]
    zk_version: Int32
    replicas: tuple[BrokerId, ...]
    offline_replicas: tuple[BrokerId, ...] = field("4+", ignorable=True)


class UpdateMetadataTopicState(Struct):
    topic_name: TopicName
    topic_id: Uuid = field("7+", ignorable=True)
    partition_states: tuple[UpdateMetadataPartitionState, ...]


class UpdateMetadataEndpoint(Struct):
    port: Int32
    host: String
    listener: String = field("3+", ignorable=True)
    security_protocol: Int16


class UpdateMetadataBroker(Struct):
    id: BrokerId
    v0_host: String = field("0", ignorable=True)
    v0_port: Int32 = field("0", ignorable=True)
    endpoints: tuple[UpdateMetadataEndpoint, ...] = field("1+", ignorable=True)
    rack: String | None = field("2+", ignorable=True)


class UpdateMetadataRequest(Struct):
    controller_id: BrokerId
    is_k_raft_controller: Bool = field("8+", default=False)
    type: Int8 = field("8+", default=0, tag=0)
    controller_epoch: Int32
    broker_epoch: Int64 = field("5+", default=-1, ignorable=True)
    ungrouped_partition_states: tuple[UpdateMetadataPartitionState, ...] = field("0-4")
    topic_states: tuple[UpdateMetadataTopicState, ...] = field("5+")
    live_brokers: tuple[UpdateMetadataBroker, ...]


class UpdateMetadataResponse(Struct):
    error_code: Int16
