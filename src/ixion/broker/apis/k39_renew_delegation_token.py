"""RenewDelegationToken, 1 to 2: extend the life of a token, up to its maximum. For owner, requester and renewers."""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import EVERYBODY
from ixion.broker.apis.services import Services
from ixion.broker.apis.token_requests import manager_of, requester_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k39_renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

RIGHTS: Final = EVERYBODY  # the token lists the principals that may


def make(services: Services) -> Handle:
    async def handle(call: Call) -> RenewDelegationTokenResponse:
        request = cast(RenewDelegationTokenRequest, call.body)
        try:
            requester, manager = requester_of(call), manager_of(services)
            expires_ms = await manager.renew(requester, bytes(request.hmac), request.renew_period_ms)
        except KafkaError as error:
            return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
        return RenewDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expires_ms)

    return handle
