"""Acquire records for a member of a share group, and acknowledge earlier ones."""

from ixion.language.protocol.notation import (
    Bool,
    BrokerId,
    GroupId,
    Int8,
    Int16,
    Int32,
    Int64,
    SentRecords,
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


class FetchPartition(Struct):
    partition_index: Int32
    acknowledgement_batches: tuple[AcknowledgementBatch, ...]


class FetchTopic(Struct):
    topic_id: Uuid
    partitions: tuple[FetchPartition, ...]


class ForgottenTopic(Struct):
    topic_id: Uuid
    partitions: tuple[Int32, ...]


class ShareFetchRequest(Struct):
    group_id: GroupId | None = None
    member_id: String | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Int8 = field("2+", default=0, ignorable=True)
    is_renew_ack: Bool = field("2+", default=False)
    topics: tuple[FetchTopic, ...]
    forgotten_topics_data: tuple[ForgottenTopic, ...]


class LeaderIdAndEpoch(Struct):
    leader_id: Int32
    leader_epoch: Int32


class AcquiredRecords(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


class PartitionData(Struct):
    partition_index: Int32
    error_code: Int16
    error_message: String | None = None
    acknowledge_error_code: Int16
    acknowledge_error_message: String | None = None
    current_leader: LeaderIdAndEpoch
    records: SentRecords
    acquired_records: tuple[AcquiredRecords, ...]


class ShareFetchableTopicResponse(Struct):
    topic_id: Uuid
    partitions: tuple[PartitionData, ...]


class NodeEndpoint(Struct):
    node_id: BrokerId
    host: String
    port: Int32
    rack: String | None = None


class ShareFetchResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    acquisition_lock_timeout_ms: Int32
    responses: tuple[ShareFetchableTopicResponse, ...]
    node_endpoints: tuple[NodeEndpoint, ...]
