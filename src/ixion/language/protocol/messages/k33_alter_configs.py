"""Replace whole configurations."""

from ixion.language.protocol.notation import Bool, Int8, Int16, Int32, String, Struct


class AlterableConfig(Struct):
    name: String
    value: String | None


class AlterConfigsResource(Struct):
    resource_type: Int8
    resource_name: String
    configs: tuple[AlterableConfig, ...]


class AlterConfigsRequest(Struct):
    resources: tuple[AlterConfigsResource, ...]
    validate_only: Bool


class AlterConfigsResourceResponse(Struct):
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String


class AlterConfigsResponse(Struct):
    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
