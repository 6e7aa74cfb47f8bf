"""The delegation tokens of some owners."""

from ixion.language.protocol.notation import Bytes, Int16, Int32, Int64, String, Struct, field


class DescribeDelegationTokenOwner(Struct):
    principal_type: String
    principal_name: String


class DescribeDelegationTokenRequest(Struct):
    owners: tuple[DescribeDelegationTokenOwner, ...] | None


class DescribedDelegationTokenRenewer(Struct):
    principal_type: String
    principal_name: String


class DescribedDelegationToken(Struct):
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = field("3+")
    token_requester_principal_name: String = field("3+")
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: String
    hmac: Bytes
    renewers: tuple[DescribedDelegationTokenRenewer, ...]


class DescribeDelegationTokenResponse(Struct):
    error_code: Int16
    tokens: tuple[DescribedDelegationToken, ...]
    throttle_time_ms: Int32 = 0
