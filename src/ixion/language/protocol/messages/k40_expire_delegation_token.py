"""Set when a delegation token expires, or expire it now."""

from ixion.language.protocol.notation import Bytes, Int16, Int32, Int64, Struct


class ExpireDelegationTokenRequest(Struct):
    hmac: Bytes
    expiry_time_period_ms: Int64


class ExpireDelegationTokenResponse(Struct):
    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = 0
