"""Rights and logins: rules, users, delegation tokens, quotas."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.broker.web.console.api.access import Access
from ixion.broker.web.console.views.layout import Column, empty, facts, filtering, heading, pages, table, value, warn
from ixion.broker.web.console.views.markup import Child, Safe, join, tag
from ixion.broker.web.console.views.words import NONE, clock, count, of

Rows = list[Sequence[Child]]


def access(found: Access, bootstrap: str) -> Safe:
    page = found["page"]
    said = (
        f"An authorizer decides by {of(found['acls'], 'rule')}."
        if found["has_authorizer"]
        else "There is no authorizer: every client may do everything."
    )
    return join(
        [
            heading("Access", said, filtering("/access", page["query"], "rules, users and quotas")),
            authorizer(found) if found["has_authorizer"] else None,
            tag("h2", "Rules"),
            rules(found, bootstrap),
            pages("/access", page),
            tag("h2", "Users"),
            users(found, bootstrap),
            tag("h2", "Delegation tokens"),
            tokens(found, bootstrap),
            tag("h2", "Quotas"),
            quotas(found),
        ]
    )


def authorizer(found: Access) -> Safe:
    everybody = warn("open to everybody") if found["allow_if_none"] else "closed"
    return facts(
        "figures",
        [("super users", ", ".join(found["super_users"]) or NONE), ("what has no rules", everybody)],
    )


def rules(found: Access, bootstrap: str) -> Safe:
    if not found["rules"]:
        if found["page"]["query"]:
            return empty("No rule matches.")
        command = (
            f"ixion acl add --allow alice --operation read --topic orders{bootstrap}" if found["has_authorizer"] else ""
        )
        return empty("There are no rules.", command)
    columns = [Column(name) for name in ("principal", "", "operation", "resource", "name", "pattern", "host")]
    rows: Rows = [
        (
            each["principal"],
            warn("denies") if each["permission"] == "deny" else "allows",
            each["operation"],
            each["resource"],
            each["name"],
            tag("span", each["pattern"], class_="dim"),
            tag("span", "any" if each["host"] == "*" else each["host"], class_="dim"),
        )
        for each in found["rules"]
    ]
    columns[1] = Column("permission")
    return table("rules", columns, rows, "rules")


def users(found: Access, bootstrap: str) -> Safe:
    if not found["users"]:
        return empty("No user logs in by SCRAM.", f"ixion user add alice{bootstrap}")
    rows: Rows = [
        (each["name"], ", ".join(each["mechanisms"]), value(count(each["iterations"]), each["iterations"]))
        for each in found["users"]
    ]
    left = found["users_count"] - len(found["users"])
    columns = [Column("user"), Column("mechanisms"), Column("iterations", True)]
    return join(
        [table("users", columns, rows, "users"), tag("p", f"and {left:,} more", class_="about") if left else None]
    )


def tokens(found: Access, bootstrap: str) -> Safe:
    if not found["tokens_enabled"]:
        return empty("They are off.", more="The setting delegation.token.secret.key turns them on.")
    if not found["token_owners"]:
        return empty("Nobody has one.", f"ixion token create --to FILE{bootstrap}")
    rows: Rows = [
        (
            each["owner"],
            each["tokens"],
            warn(count(each["expired"])) if each["expired"] else "0",
            value(NONE if each["next_expiry_ms"] is None else clock(each["next_expiry_ms"]), each["next_expiry_ms"]),
        )
        for each in found["token_owners"]
    ]
    columns = [Column("owner"), Column("tokens", True), Column("expired", True), Column("next one expires", True)]
    return table("token-owners", columns, rows, "delegation tokens")


def quotas(found: Access) -> Safe:
    if not found["quotas"]:
        return empty(
            "No client has a quota.",
            more="kafka-configs.sh and the admin clients of Kafka set quotas (AlterClientQuotas).",
        )
    rows: Rows = [
        (
            each["user"] or "any",
            each["client_id"] or "any",
            ", ".join(f"{name} {limit:,.0f}" for name, limit in each["limits"].items()),
        )
        for each in found["quotas"]
    ]
    return table("quotas", [Column("user"), Column("client id"), Column("limits")], rows, "quotas")
