"""The API keys and versions that a broker supports, and the features of the cluster.

The response header is always version 0, because the client does not know the versions yet.
"""

from ixion.language.protocol.notation import Bool, Int16, Int32, Int64, String, Struct, field


class ApiVersionsRequest(Struct):
    client_software_name: String = field("3+", ignorable=True)
    client_software_version: String = field("3+", ignorable=True)
    cluster_id: String | None = field("5+", default=None, ignorable=True)
    node_id: Int32 = field("5+", default=-1, ignorable=True)


class ApiVersion(Struct):
    api_key: Int16
    min_version: Int16
    max_version: Int16


class SupportedFeatureKey(Struct):
    name: String
    min_version: Int16
    max_version: Int16


class FinalizedFeatureKey(Struct):
    name: String
    max_version_level: Int16
    min_version_level: Int16


class ApiVersionsResponse(Struct):
    error_code: Int16
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: Int32 = field("1+", ignorable=True)
    supported_features: tuple[SupportedFeatureKey, ...] = field("3+", tag=0, ignorable=True)
    finalized_features_epoch: Int64 = field("3+", default=-1, tag=1, ignorable=True)
    finalized_features: tuple[FinalizedFeatureKey, ...] = field("3+", tag=2, ignorable=True)
    zk_migration_ready: Bool = field("3+", default=False, tag=3, ignorable=True)
