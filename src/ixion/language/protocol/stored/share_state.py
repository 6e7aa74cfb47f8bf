"""Records of __share_group_state: the state of a share partition as snapshots, and updates that follow them."""

from ixion.language.protocol.notation import Int8, Int16, Int32, Int64, String, Struct, Uuid, field


class ShareSnapshotKey(Struct, within="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class ShareUpdateKey(Struct, within="0"):
    group_id: String
    topic_id: Uuid
    partition: Int32


class StateBatch(Struct):
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16
    due_ms: Int64 = field(default=0, tag=5000)


class ShareSnapshotValue(Struct, within="0", flexible="0+"):
    snapshot_epoch: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = field(default=-1, tag=0)
    create_timestamp: Int64
    write_timestamp: Int64
    state_batches: tuple[StateBatch, ...]


class ShareUpdateValue(Struct, within="0", flexible="0+"):
    snapshot_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = field(default=-1, tag=0)
    state_batches: tuple[StateBatch, ...]
