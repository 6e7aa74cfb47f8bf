"""Extend the life of a delegation token."""

from ixion.language.protocol.notation import Bytes, Int16, Int32, Int64, Struct


class RenewDelegationTokenRequest(Struct):
    hmac: Bytes
    renew_period_ms: Int64


class RenewDelegationTokenResponse(Struct):
    error_code: Int16
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = 0
