"""The configuration of topics, brokers and groups."""

from ixion.language.protocol.notation import Bool, Int8, Int16, Int32, String, Struct, field


class DescribeConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configuration_keys: tuple[String, ...] | None


class DescribeConfigsRequest(Struct):
    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: Bool = False
    include_documentation: Bool = field("3+", default=False)


class DescribeConfigsSynonym(Struct):
    name: String
    value: String | None
    source: Int8


class DescribeConfigsResourceResult(Struct):
    name: String
    value: String | None
    read_only: Bool
    config_source: Int8 = -1
    is_sensitive: Bool
    synonyms: tuple[DescribeConfigsSynonym, ...]
    config_type: Int8 = field("3+", default=0, ignorable=True)
    documentation: String | None = field("3+", ignorable=True)


class DescribeConfigsResult(Struct):
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    configs: tuple[DescribeConfigsResourceResult, ...]


class DescribeConfigsResponse(Struct):
    throttle_time_ms: Int32 = 0
    results: tuple[DescribeConfigsResult, ...]
