"""DescribeDelegationToken, 1 to 3: the tokens of some owners, or all, that the client may see.

A user sees the tokens that it owns, has requested, or may renew. For others it needs DESCRIBE on the token, or
DESCRIBE_TOKENS on its owner. The response has the secrets, as in Kafka.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import DELEGATION_TOKEN, DESCRIBE, DESCRIBE_TOKENS, USER
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.guard import IN_HANDLER
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.broker.apis.token_requests import OWNER_SINCE, manager_of, requester_of, split
from ixion.language.model.delegation_token import Token
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k41_describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ixion.timer.turns import Steps

REPEATS: Final = {"owners": once("principal_type", "principal_name")}
RIGHTS: Final = IN_HANDLER  # of others: DESCRIBE token or DESCRIBE_TOKENS user


def make(services: Services) -> Handle:
    def handle(call: Call) -> Steps[DescribeDelegationTokenResponse]:
        request = cast(DescribeDelegationTokenRequest, call.body)
        try:
            requester, manager = requester_of(call), manager_of(services)
        except KafkaError as error:
            return DescribeDelegationTokenResponse(error_code=error.code, tokens=())
        owners: set[str] | None = None
        if request.owners is not None:
            owners = set()
            for owner in request.owners:
                owners.add(f"{owner.principal_type}:{owner.principal_name}")
                yield
        found = []
        for token in manager.tokens.all() if owners is None or owners else ():
            if is_meant(token, owners) and (token.concerns(requester) or may_see(call, token)):
                found.append(described(token, manager.tokens.hmac_of(token.token_id), call.version))
            yield
        return DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=tuple(found))

    return handle


def is_meant(token: Token, owners: set[str] | None) -> bool:
    return owners is None or not owners.isdisjoint((token.owner, token.requester, *token.renewers))


def may_see(call: Call, token: Token) -> bool:
    rights = call.rights
    return (
        rights is None
        or rights.sees(DESCRIBE, DELEGATION_TOKEN, token.token_id)
        or rights.sees(DESCRIBE_TOKENS, USER, token.owner)
    )


def described(token: Token, hmac: bytes, version: int) -> DescribedDelegationToken:
    owner_kind, owner_name = split(token.owner)
    kind, name = split(token.requester)
    return DescribedDelegationToken(
        principal_type=owner_kind,
        principal_name=owner_name,
        token_requester_principal_type=kind if version >= OWNER_SINCE else "",
        token_requester_principal_name=name if version >= OWNER_SINCE else "",
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=hmac,
        renewers=tuple(
            DescribedDelegationTokenRenewer(principal_type=split(each)[0], principal_name=split(each)[1])
            for each in token.renewers
        ),
    )
