"""SaslHandshake, 0 and 1: the client chooses a mechanism.

After version 1 the client sends SaslAuthenticate; after version 0 (clients before Kafka 1.0) bare SASL messages: a size
and that many bytes. On a listener without SASL the response is ILLEGAL_SASL_STATE, as in Kafka. A client that chose a
mechanism that is not enabled gets the list of enabled ones, and its connection is closed. To re-authenticate, a client
must use version 1.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import EVERYBODY
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k17_sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

RIGHTS: Final = EVERYBODY


def make(_services: Services) -> Handle:
    def handle(call: Call) -> SaslHandshakeResponse:
        request = cast(SaslHandshakeRequest, call.body)
        connection = call.request.connection
        gate = connection.gate
        if gate is None:
            return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=())
        again = gate.is_open
        code = ErrorCode.UNSUPPORTED_VERSION if call.version == 0 and again else gate.choose(request.mechanism)
        if code != ErrorCode.NONE:
            connection.end_with_answer("authentication")
        elif call.version == 0:
            gate.is_bare = True
            connection.expect_messages(True)
        return SaslHandshakeResponse(error_code=code, mechanisms=tuple(gate.mechanisms))

    return handle
