"""A producer commits a group's offsets as part of a transaction."""

from ixion.language.protocol.notation import (
    GroupId,
    Int16,
    Int32,
    Int64,
    ProducerId,
    String,
    Struct,
    TopicName,
    TransactionalId,
    Uuid,
    field,
)


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: String | None


class TxnOffsetCommitRequestTopic(Struct):
    name: TopicName = field("0-5", ignorable=True)
    topic_id: Uuid = field("6+", ignorable=True)
    partitions: tuple[TxnOffsetCommitRequestPartition, ...]


class TxnOffsetCommitRequest(Struct):
    transactional_id: TransactionalId
    group_id: GroupId
    producer_id: ProducerId
    producer_epoch: Int16
    generation_id_or_member_epoch: Int32 = field("3+", default=-1)
    member_id: String = field("3+", default="")
    group_instance_id: String | None = field("3+", default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...]


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: Int32
    error_code: Int16


class TxnOffsetCommitResponseTopic(Struct):
    name: TopicName = field("0-5", ignorable=True)
    topic_id: Uuid = field("6+", ignorable=True)
    partitions: tuple[TxnOffsetCommitResponsePartition, ...]


class TxnOffsetCommitResponse(Struct):
    throttle_time_ms: Int32 = 0
    topics: tuple[TxnOffsetCommitResponseTopic, ...]
