"""Change single configuration values."""

from ixion.language.protocol.notation import Bool, Int8, Int16, Int32, String, Struct


class AlterableConfig(Struct):
    name: String
    config_operation: Int8
    value: String | None


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: tuple[AlterableConfig, ...]


class IncrementalAlterConfigsRequest(Struct):
    resources: tuple[AlterConfigsResource, ...]
    validate_only: Bool


class AlterConfigsResourceResponse(Struct):
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String


class IncrementalAlterConfigsResponse(Struct):
    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
