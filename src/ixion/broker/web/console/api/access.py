"""Rights and logins: rules, users that log in by SCRAM, delegation tokens by owner, and quotas. Never a secret."""

from __future__ import annotations

from typing import Final, TypedDict

from ixion.broker.acl.numbers import CLUSTER, DELEGATION_TOKEN, DESCRIBE, DESCRIBE_CONFIGS
from ixion.broker.web.console.api.figures import Page, in_short_turns, page_of
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.language.model.acl_names import CLUSTER_NAME
from ixion.timer.turns import Steps

MOST_SHOWN: Final = 1000
MOST_LOOKED_AT: Final = 100_000  # rules


class QuotaRow(TypedDict):
    user: str | None
    client_id: str | None
    limits: dict[str, float]


class RuleRow(TypedDict):
    principal: str
    permission: str  # allow or deny
    operation: str
    resource: str  # a kind of resource
    pattern: str  # literal or prefixed
    name: str
    host: str


class UserRow(TypedDict):
    name: str
    mechanisms: list[str]
    iterations: int  # the fewest of its credentials


class TokenOwner(TypedDict):
    owner: str
    tokens: int
    expired: int
    next_expiry_ms: int | None


class Access(TypedDict):
    has_authorizer: bool
    allow_if_none: bool  # what has no rules may be used by everybody
    super_users: list[str]
    acls: int
    page: Page
    rules: list[RuleRow]
    users: list[UserRow]
    users_count: int
    tokens_enabled: bool
    token_owners: list[TokenOwner]
    quotas: list[QuotaRow]


async def access(inside: Inside, request: HttpRequest) -> Access:
    wanted = request.query.get("q", "")[:100].lower()
    found = await in_short_turns(rules(inside, wanted))
    page = page_of(request, len(found))
    authorizer = inside.authorizer
    users = sorted(name for name in inside.credentials.users if wanted in name.lower())
    return Access(
        has_authorizer=authorizer is not None,
        allow_if_none=authorizer is None or authorizer.rules.allow_if_none,
        super_users=[] if authorizer is None else sorted(authorizer.rules.super_users)[:MOST_SHOWN],
        acls=0 if authorizer is None else authorizer.rules.count,
        page=page,
        rules=found[page["start"] : page["start"] + page["limit"]],
        users=[user_row(inside, name) for name in users[:MOST_SHOWN]],
        users_count=len(users),
        tokens_enabled=inside.tokens.enabled,
        token_owners=[each for each in await in_short_turns(token_owners(inside)) if wanted in each["owner"].lower()][
            :MOST_SHOWN
        ],
        quotas=[
            QuotaRow(user=entity.user, client_id=entity.client_id, limits=dict(limits))
            for entity, limits in list(inside.quotas.limits.entities.items())[:MOST_SHOWN]
            if wanted in f"{entity.user} {entity.client_id}".lower()
            and inside.caller.sees(DESCRIBE_CONFIGS, CLUSTER, CLUSTER_NAME)
        ],
    )


def rules(inside: Inside, wanted: str) -> Steps[list[RuleRow]]:
    found: list[RuleRow] = []
    if inside.authorizer is None:
        return found
    for resource, entries in sorted(inside.authorizer.rules.resources.items())[:MOST_LOOKED_AT]:
        for entry in entries:
            row = RuleRow(
                principal=entry.principal,
                permission=entry.permission.name.lower(),
                operation=entry.operation.title,
                resource=resource.kind.title,
                pattern=resource.pattern.name.lower(),
                name=resource.name,
                host=entry.host,
            )
            if wanted in " ".join(str(each) for each in row.values()).lower():
                found.append(row)
            yield
    return found


def user_row(inside: Inside, name: str) -> UserRow:
    credentials = inside.credentials.users.get(name, {})
    fewest = min((each.iterations for each in credentials.values()), default=0)
    return UserRow(name=name, mechanisms=sorted(credentials), iterations=fewest)


def token_owners(inside: Inside) -> Steps[list[TokenOwner]]:
    """Of tokens that are the caller's own, or that it may describe."""
    now_ms = inside.clock_ms()
    found: dict[str, TokenOwner] = {}
    for token in inside.tokens.all():  # at most 10,000
        yield
        mine = inside.caller.principal == token.owner
        if not mine and not inside.caller.sees(DESCRIBE, DELEGATION_TOKEN, token.token_id):
            continue
        row = found.setdefault(token.owner, TokenOwner(owner=token.owner, tokens=0, expired=0, next_expiry_ms=None))
        row["tokens"] += 1
        if token.is_over(now_ms):
            row["expired"] += 1
        elif row["next_expiry_ms"] is None or token.expires_ms < row["next_expiry_ms"]:
            row["next_expiry_ms"] = token.expires_ms
    return [found[owner] for owner in sorted(found)]
