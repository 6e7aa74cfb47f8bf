"""The brokers, the controller and the id of the cluster."""

from ixion.language.protocol.notation import Bool, BrokerId, Int8, Int16, Int32, String, Struct, field


class DescribeClusterRequest(Struct):
    include_cluster_authorized_operations: Bool
    endpoint_type: Int8 = field("1+", default=1)
    include_fenced_brokers: Bool = field("2+")


class DescribeClusterBroker(Struct):
    broker_id: BrokerId
    host: String
    port: Int32
    rack: String | None = None
    is_fenced: Bool = field("2+")


class DescribeClusterResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None = None
    endpoint_type: Int8 = field("1+", default=1)
    cluster_id: String
    controller_id: BrokerId = -1
    brokers: tuple[DescribeClusterBroker, ...]
    cluster_authorized_operations: Int32 = -(2**31)
