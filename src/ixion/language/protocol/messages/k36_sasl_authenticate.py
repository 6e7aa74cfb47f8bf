"""One step of a SASL exchange."""

from ixion.language.protocol.notation import Bytes, Int16, Int64, String, Struct, field


class SaslAuthenticateRequest(Struct):
    auth_bytes: Bytes


class SaslAuthenticateResponse(Struct):
    error_code: Int16
    error_message: String | None
    auth_bytes: Bytes
    session_lifetime_ms: Int64 = field("1+", default=0, ignorable=True)
