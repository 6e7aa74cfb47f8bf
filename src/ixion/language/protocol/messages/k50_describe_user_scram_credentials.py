"""Which SCRAM credentials users have."""

from ixion.language.protocol.notation import Int8, Int16, Int32, String, Struct


class UserName(Struct):
    name: String


class DescribeUserScramCredentialsRequest(Struct):
    users: tuple[UserName, ...] | None


class CredentialInfo(Struct):
    mechanism: Int8
    iterations: Int32


class DescribeUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: String | None
    credential_infos: tuple[CredentialInfo, ...]


class DescribeUserScramCredentialsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    results: tuple[DescribeUserScramCredentialsResult, ...]
