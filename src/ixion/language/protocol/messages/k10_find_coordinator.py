"""Which broker coordinates a group, a transactional id or a share group."""

from ixion.language.protocol.notation import BrokerId, Int8, Int16, Int32, String, Struct, field


class FindCoordinatorRequest(Struct):
    key: String = field("0-3")
    key_type: Int8 = field("1+", default=0)
    coordinator_keys: tuple[String, ...] = field("4+")


class Coordinator(Struct):
    key: String
    node_id: BrokerId
    host: String
    port: Int32
    error_code: Int16
    error_message: String | None


class FindCoordinatorResponse(Struct):
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    error_code: Int16 = field("0-3")
    error_message: String | None = field("1-3", ignorable=True)
    node_id: BrokerId = field("0-3")
    host: String = field("0-3")
    port: Int32 = field("0-3")
    coordinators: tuple[Coordinator, ...] = field("4+")
