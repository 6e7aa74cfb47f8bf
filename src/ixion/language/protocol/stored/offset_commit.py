"""Records of __consumer_offsets: how far a group has read a partition."""

from ixion.language.protocol.notation import Int32, Int64, String, Struct, Uuid, field


class OffsetCommitKey(Struct, within="0"):
    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(Struct, within="0-4", flexible="4+"):
    offset: Int64
    leader_epoch: Int32 = field("3+", default=-1, ignorable=True)
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Int64 = field("1", default=-1, ignorable=True)
    topic_id: Uuid = field("4+", tag=0, ignorable=True)
