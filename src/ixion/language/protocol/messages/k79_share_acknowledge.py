"""Acknowledge records acquired for a member of a share group."""

from ixion.language.protocol.notation import (
    Bool,
    BrokerId,
    GroupId,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    Uuid,
    field,
)


class AcknowledgementBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: tuple[Int8, ...]
    delay_ms: Int64 = field(default=0, tag=5000)  # ours: how long released records stay away; Kafka ignores the tag


class AcknowledgePartition(Struct):
    partition_index: Int32
    acknowledgement_batches: tuple[AcknowledgementBatch, ...]


class AcknowledgeTopic(Struct):
    topic_id: Uuid
    partitions: tuple[AcknowledgePartition, ...]


class ShareAcknowledgeRequest(Struct):
    group_id: GroupId | None = None
    member_id: String | None
    share_session_epoch: Int32
    is_renew_ack: Bool = field("2+", default=False)
    topics: tuple[AcknowledgeTopic, ...]


class LeaderIdAndEpoch(Struct):
    leader_id: Int32
    leader_epoch: Int32


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    current_leader: LeaderIdAndEpoch


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class NodeEndpoint(Struct):
    node_id: BrokerId
    host: String
    port: Int32
    rack: String | None = None


class ShareAcknowledgeResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32 = field("2+", ignorable=True)
    responses: tuple[ShareAcknowledgeTopicResponse, ...]
    node_endpoints: tuple[NodeEndpoint, ...]
