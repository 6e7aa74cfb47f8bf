"""Create a delegation token."""

from ixion.language.protocol.notation import Bytes, Int16, Int32, Int64, String, Struct, field


class CreatableRenewers(Struct):
    principal_type: String
    principal_name: String


class CreateDelegationTokenRequest(Struct):
    owner_principal_type: String | None = field("3+")
    owner_principal_name: String | None = field("3+")
    renewers: tuple[CreatableRenewers, ...]
    max_lifetime_ms: Int64


class CreateDelegationTokenResponse(Struct):
    error_code: Int16
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = field("3+")
    token_requester_principal_name: String = field("3+")
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32 = 0
