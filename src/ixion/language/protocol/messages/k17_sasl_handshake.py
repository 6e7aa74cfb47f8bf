"""Choose a SASL mechanism."""

from ixion.language.protocol.notation import Int16, String, Struct


class SaslHandshakeRequest(Struct):
    mechanism: String


class SaslHandshakeResponse(Struct):
    error_code: Int16
    mechanisms: tuple[String, ...]
