"""SaslAuthenticate, 0 to 2: one step of a SASL exchange.

A refused client gets the response after connection.failed.authentication.delay.ms, and the connection is closed.
Version 1 brought the lifetime of the session, after which the client must re-authenticate (KIP-368). After
SaslHandshake 0 messages have no headers, and a refused client gets no response. The first login with a delegation token
waits for a worker thread (`security.tokens`).
"""

from __future__ import annotations

import logging
from typing import Final, cast

from ixion.broker.apis.call import Call, Handle, Outcome
from ixion.broker.apis.guards.guard import EVERYBODY
from ixion.broker.apis.services import Services
from ixion.broker.security.gate import Gate, SaslAnswer
from ixion.config.security_settings import CONNECTION_FAILED_AUTHENTICATION_DELAY_MS
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k36_sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ixion.language.wire.answer import LATER

RIGHTS: Final = EVERYBODY

logger = logging.getLogger(__name__)


def make(services: Services) -> Handle:
    timer = services.timer

    def handle(call: Call) -> Outcome:
        request = cast(SaslAuthenticateRequest, call.body)
        gate = call.request.connection.gate
        if gate is None:
            text = "this listener does not use SASL"
            return respond(SaslAnswer(code=ErrorCode.ILLEGAL_SASL_STATE, message=text))
        received = bytes(request.auth_bytes)
        prepared = gate.prepare(received)
        if prepared is None:
            return authenticate(call, gate, received)
        prepared.add_done_callback(lambda _: later(call, gate, received))
        return LATER

    def later(call: Call, gate: Gate, received: bytes) -> None:
        try:
            outcome = authenticate(call, gate, received)
        except Exception as error:
            call.request.fail(error)
            return
        if isinstance(outcome, SaslAuthenticateResponse):
            call.respond(outcome)

    def authenticate(call: Call, gate: Gate, received: bytes) -> Outcome:
        connection = call.request.connection
        answer = gate.authenticate(received)
        if answer.ends:
            logger.info("refused %s on listener %s: %s", call.address, call.listener, answer.message)
            connection.end_with_answer("authentication")
            delay_ms = services.config.current[CONNECTION_FAILED_AUTHENTICATION_DELAY_MS]
            if gate.is_bare:
                timer.call_later(delay_ms, call.no_response)
            else:
                timer.call_later(delay_ms, call.respond, respond(answer))
            return LATER
        if gate.is_open:
            connection.authenticated(gate.principal)
        if gate.is_bare:
            if gate.is_open:
                gate.is_bare = False
                connection.expect_messages(False)
            call.request.respond([len(answer.data).to_bytes(4, "big"), answer.data])
            return LATER
        return respond(answer)

    return handle


def respond(answer: SaslAnswer) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=answer.code,
        error_message=answer.message,
        auth_bytes=answer.data,
        session_lifetime_ms=answer.lifetime_ms,
    )
