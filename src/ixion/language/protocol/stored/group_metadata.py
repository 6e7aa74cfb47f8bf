"""Records of __consumer_offsets: a classic group, its members and their assignments."""

from ixion.language.protocol.notation import Bytes, Int32, Int64, String, Struct, field


class GroupMetadataKey(Struct, within="0"):
    group: String


class MemberMetadata(Struct):
    member_id: String
    group_instance_id: String | None = field("3+", default=None, ignorable=True)
    client_id: String
    client_host: String
    rebalance_timeout: Int32 = field("1+", default=-1, ignorable=True)
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


class GroupMetadataValue(Struct, within="0-4", flexible="4+"):
    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Int64 = field("2+", default=-1, ignorable=True)
    members: tuple[MemberMetadata, ...]
