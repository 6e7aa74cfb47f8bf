"""CreateDelegationToken, 1 to 3: create a token for the client, or from version 3 on for another owner (KIP-373).

For another owner the client needs CREATE_TOKENS on that user. Renewers are users. The response has the HMAC, the secret
of the token.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import CREATE_TOKENS, USER
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import IN_HANDLER
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.token_requests import OWNER_SINCE, manager_of, requester_of, split
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k38_create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

REPEATS: Final = {"renewers": once("principal_type", "principal_name")}
RIGHTS: Final = IN_HANDLER  # for another owner: CREATE_TOKENS user

MOST_RENEWERS: Final = 1_000
LONGEST_NAMES: Final = 4_000  # characters of the owner and all renewers: each broker remembers 10,000 tokens


def make(services: Services) -> Handle:
    async def handle(call: Call) -> CreateDelegationTokenResponse:
        request = cast(CreateDelegationTokenRequest, call.body)
        requester = call.request.connection.principal
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
        if not request.owner_principal_name:
            owner = requester
        try:
            requester_of(call)
            if not owner.startswith("User:"):  # no login has another type: the token would be one of that user
                raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
            if owner != requester and call.rights is not None and not call.rights.may(CREATE_TOKENS, USER, owner):
                raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
            if any(each.principal_type != "User" for each in request.renewers):
                raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
            renewers = tuple(dict.fromkeys(f"User:{each.principal_name}" for each in request.renewers))
            if len(renewers) > MOST_RENEWERS or sum(map(len, (owner, *renewers))) > LONGEST_NAMES:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            manager = manager_of(services)
            token = await manager.create(owner, requester, renewers, request.max_lifetime_ms)
        except KafkaError as error:
            return answer(call, owner).replace(error_code=error.code)
        return answer(call, owner).replace(
            issue_timestamp_ms=token.issued_ms,
            expiry_timestamp_ms=token.expires_ms,
            max_timestamp_ms=token.max_ms,
            token_id=token.token_id,
            hmac=manager.tokens.hmac_of(token.token_id),
        )

    def answer(call: Call, owner: str) -> CreateDelegationTokenResponse:
        """A response without a token."""
        owner_kind, owner_name = split(owner)
        kind, name = split(call.request.connection.principal) if call.version >= OWNER_SINCE else ("", "")
        return CreateDelegationTokenResponse(
            error_code=ErrorCode.NONE,
            principal_type=owner_kind,
            principal_name=owner_name,
            token_requester_principal_type=kind,
            token_requester_principal_name=name,
            issue_timestamp_ms=-1,
            expiry_timestamp_ms=-1,
            max_timestamp_ms=-1,
            token_id="",
            hmac=b"",
        )

    return handle
