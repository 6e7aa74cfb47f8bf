"""Which metrics the broker wants from a client."""

from ixion.language.protocol.notation import Bool, Int8, Int16, Int32, String, Struct, Uuid


class GetTelemetrySubscriptionsRequest(Struct):
    client_instance_id: Uuid


class GetTelemetrySubscriptionsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    client_instance_id: Uuid
    subscription_id: Int32
    accepted_compression_types: tuple[Int8, ...]
    push_interval_ms: Int32
    telemetry_max_bytes: Int32
    delta_temporality: Bool
    requested_metrics: tuple[String, ...]
