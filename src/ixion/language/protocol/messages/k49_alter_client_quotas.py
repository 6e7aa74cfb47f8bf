"""Change quotas."""

from ixion.language.protocol.notation import Bool, Float64, Int16, Int32, String, Struct


class EntityData(Struct):
    entity_type: String
    entity_name: String | None


class OpData(Struct):
    key: String
    value: Float64
    remove: Bool


class EntryData(Struct):
    entity: tuple[EntityData, ...]
    ops: tuple[OpData, ...]


class AlterClientQuotasRequest(Struct):
    entries: tuple[EntryData, ...]
    validate_only: Bool


class ResponseEntryData(Struct):
    error_code: Int16
    error_message: String | None
    entity: tuple[EntityData, ...]


class AlterClientQuotasResponse(Struct):
    throttle_time_ms: Int32 = 0
    entries: tuple[ResponseEntryData, ...]
