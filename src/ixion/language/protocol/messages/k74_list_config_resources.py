"""The names of resources that have a configuration."""

from ixion.language.protocol.notation import Int8, Int16, Int32, String, Struct, field


class ListConfigResourcesRequest(Struct):
    resource_types: tuple[Int8, ...] = field("1+")


class ConfigResource(Struct):
    resource_name: String
    resource_type: Int8 = field("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    config_resources: tuple[ConfigResource, ...]
