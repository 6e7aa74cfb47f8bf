"""The quotas that match a filter."""

from ixion.language.protocol.notation import Bool, Float64, Int8, Int16, Int32, String, Struct


class ComponentData(Struct):
    entity_type: String
    match_type: Int8
    match: String | None


class DescribeClientQuotasRequest(Struct):
    components: tuple[ComponentData, ...]
    strict: Bool


class EntityData(Struct):
    entity_type: String
    entity_name: String | None


class ValueData(Struct):
    key: String
    value: Float64


class EntryData(Struct):
    entity: tuple[EntityData, ...]
    values: tuple[ValueData, ...]


class DescribeClientQuotasResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    entries: tuple[EntryData, ...] | None
