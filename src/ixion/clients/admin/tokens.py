"""Delegation tokens: created, renewed, expired, described. A principal is written as `User:alice`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ixion.clients.admin.plan import ANY, CONTROLLER, Call, Plan
from ixion.clients.admin.routes import fault_of, one
from ixion.language.protocol.registry import ApiKey


class DelegationToken(NamedTuple):
    token_id: str
    owner: str
    hmac: bytes  # the secret
    issued_ms: int
    expires_ms: int
    max_ms: int
    renewers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<delegation token {self.token_id} of {self.owner}>"


def split(principal: str) -> tuple[str, str]:
    kind, colon, name = principal.partition(":")
    if not colon or not kind or not name:
        raise ValueError(f"{principal!r} is not a principal: write User:NAME")
    return kind, name


def create_delegation_token(
    call: Call, *, owner: str | None = None, renewers: Iterable[str] = (), max_lifetime_ms: int = -1
) -> Plan[DelegationToken]:
    """Create a token for the authenticated user, or for another owner (KIP-373)."""
    from ixion.language.protocol.messages.k38_create_delegation_token import (
        CreatableRenewers,
        CreateDelegationTokenRequest,
        CreateDelegationTokenResponse,
    )

    names = tuple(renewers)
    kind, name = (None, None) if owner is None else split(owner)
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind,
        owner_principal_name=name,
        renewers=tuple(CreatableRenewers(principal_type=each[0], principal_name=each[1]) for each in map(split, names)),
        max_lifetime_ms=max_lifetime_ms,
    )
    answer = yield from one(
        call,
        CONTROLLER,
        ApiKey.CREATE_DELEGATION_TOKEN,
        lambda _: request,
        CreateDelegationTokenResponse,
        oldest=1 if owner is None else 3,
        check=lambda found: fault_of(found.error_code, None, "the delegation token"),
    )
    return DelegationToken(
        answer.token_id,
        f"{answer.principal_type}:{answer.principal_name}",
        bytes(answer.hmac),
        answer.issue_timestamp_ms,
        answer.expiry_timestamp_ms,
        answer.max_timestamp_ms,
        names,
    )


def renew_delegation_token(call: Call, hmac: bytes, *, period_ms: int = -1) -> Plan[int]:
    """Renew a token. Returns its new expiry, in ms since 1970."""
    from ixion.language.protocol.messages.k39_renew_delegation_token import (
        RenewDelegationTokenRequest,
        RenewDelegationTokenResponse,
    )

    answer = yield from one(
        call,
        CONTROLLER,
        ApiKey.RENEW_DELEGATION_TOKEN,
        lambda _: RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms),
        RenewDelegationTokenResponse,
        check=lambda found: fault_of(found.error_code, None, "the delegation token"),
    )
    return answer.expiry_timestamp_ms


def expire_delegation_token(call: Call, hmac: bytes, *, period_ms: int = -1) -> Plan[int]:
    """Let a token expire after `period_ms`, by default at once. Returns the expiry, in ms since 1970."""
    from ixion.language.protocol.messages.k40_expire_delegation_token import (
        ExpireDelegationTokenRequest,
        ExpireDelegationTokenResponse,
    )

    answer = yield from one(
        call,
        CONTROLLER,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        lambda _: ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms),
        ExpireDelegationTokenResponse,
        check=lambda found: fault_of(found.error_code, None, "the delegation token"),
    )
    return answer.expiry_timestamp_ms


def describe_delegation_tokens(call: Call, owners: Iterable[str] | None = None) -> Plan[list[DelegationToken]]:
    """The tokens of these owners, or all that the user may see."""
    from ixion.language.protocol.messages.k41_describe_delegation_token import (
        DescribeDelegationTokenOwner,
        DescribeDelegationTokenRequest,
        DescribeDelegationTokenResponse,
    )

    wanted = (
        None
        if owners is None
        else tuple(
            DescribeDelegationTokenOwner(principal_type=each[0], principal_name=each[1]) for each in map(split, owners)
        )
    )
    answer = yield from one(
        call,
        ANY,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        lambda _: DescribeDelegationTokenRequest(owners=wanted),
        DescribeDelegationTokenResponse,
        check=lambda found: fault_of(found.error_code, None, "the delegation tokens"),
    )
    return [
        DelegationToken(
            each.token_id,
            f"{each.principal_type}:{each.principal_name}",
            bytes(each.hmac),
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
            tuple(f"{renewer.principal_type}:{renewer.principal_name}" for renewer in each.renewers),
        )
        for each in answer.tokens
    ]
