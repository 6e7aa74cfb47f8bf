"""ExpireDelegationToken, 1 to 2: a token expires after a period, or at once if the period is negative.

For owner, requester and renewers. Connections opened with the token stay until it would have expired.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import EVERYBODY
from ixion.broker.apis.services import Services
from ixion.broker.apis.token_requests import manager_of, requester_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k40_expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

RIGHTS: Final = EVERYBODY


def make(services: Services) -> Handle:
    async def handle(call: Call) -> ExpireDelegationTokenResponse:
        request = cast(ExpireDelegationTokenRequest, call.body)
        try:
            requester, manager = requester_of(call), manager_of(services)
            expires_ms = await manager.expire(requester, bytes(request.hmac), request.expiry_time_period_ms)
        except KafkaError as error:
            return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=-1)
        return ExpireDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expires_ms)

    return handle
