"""Metrics from a client, compressed."""

from ixion.language.protocol.notation import Bool, Bytes, Int8, Int16, Int32, Struct, Uuid


class PushTelemetryRequest(Struct):
    client_instance_id: Uuid
    subscription_id: Int32
    terminating: Bool
    compression_type: Int8
    metrics: Bytes


class PushTelemetryResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
