"""SaslHandshake, 0 and 1: the client chooses a mechanism.

Version 1 is followed by SaslAuthenticate. Version 0 would be followed by tokens without Kafka's headers, which only
clients before Kafka 1.0 need: it is refused with UNSUPPORTED_VERSION. On a listener without SASL the answer is
ILLEGAL_SASL_STATE, as in Kafka. A client that chose a mechanism which is not enabled learns which are, and is closed.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def make(_services: Services) -> Handle:
    def handle(call: Call) -> SaslHandshakeResponse:
        request = cast(SaslHandshakeRequest, call.body)
        connection = call.request.connection
        gate = connection.gate
        if gate is None:
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
        code = ErrorCode.UNSUPPORTED_VERSION if call.version == 0 else gate.choose(request.mechanism)
        if code != ErrorCode.NONE:
            connection.end_with_answer("authentication")
        return SaslHandshakeResponse(error_code=code, mechanisms=tuple(gate.mechanisms))

    return handle
