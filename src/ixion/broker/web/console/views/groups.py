"""Groups, and one group."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from ixion.broker.web.console.api.group_rows import GroupDetail, Groups
from ixion.broker.web.console.api.share_groups import Shares
from ixion.broker.web.console.lags import STEP_S as LAG_STEP_S
from ixion.broker.web.console.views.layout import Column, empty, facts, filtering, heading, pages, table, value, warn
from ixion.broker.web.console.views.markup import Child, Safe, join, link, tag
from ixion.broker.web.console.views.overview import curve
from ixion.broker.web.console.views.words import NONE, clock, count, of

QUIET: Final = ("Stable", "Empty")
FIGURES: Final = ("generation", "members", "topics", "lag")


def groups(found: Groups, bootstrap: str) -> Safe:
    page = found["page"]
    head = heading("Groups", of(page["total"], "group"), filtering("/groups", page["query"], "groups"))
    if not found["groups"]:
        if page["query"]:
            return join([head, empty(f"No group has {page['query']!r} in its name.")])
        return join(
            [
                head,
                empty(
                    "There is no group yet. A consumer with a group makes one:",
                    f"ixion consume greetings --group readers{bootstrap}",
                ),
            ]
        )
    columns = [
        Column("group"),
        Column("state"),
        Column("protocol"),
        Column("coordinator", True),
        Column("generation", True),
        Column("members", True),
        Column("topics", True),
        Column("lag", True),
    ]
    rows: list[Sequence[Child]] = [
        (
            tag("a", each["group"], href=link("groups", each["group"])),
            state(each["state"]),
            each["protocol"],
            str(each["broker"]),
            *(value(count(each[name]), each[name]) for name in FIGURES),
        )
        for each in found["groups"]
    ]
    silent = [tag("p", warn(f"{why[:1].upper()}{why[1:]}: its groups are not shown.")) for why in found["silent"]]
    return join(
        [
            head,
            tag("div", silent, id="silent", data_live=True),
            table("groups", columns, rows, "groups"),
            pages("/groups", page),
        ]
    )


def state(name: str) -> Child:
    return tag("span", name, class_="dim") if name in QUIET else warn(name)


def group(found: GroupDetail, bootstrap: str) -> Safe:
    return join(
        [
            heading(found["group"], f"{found['protocol']} group"),
            facts(
                "figures",
                [
                    ("state", state(found["state"])),
                    ("coordinator", str(found["broker"])),
                    ("generation", str(found["generation"])),
                    ("assignor", found["assignor"] or NONE),
                    ("members", count(found["members_count"])),
                    ("lag", count(found["lag"])),
                ],
            ),
            tag("h2", "Lag of the last hour"),
            tag(
                "div",
                curve("lag", "", found["lags"], LAG_STEP_S),
                class_="curves one",
                id="lags",
                data_live=True,
            ),
            tag("h2", "Members"),
            members(found, bootstrap),
            tag("h2", "Committed offsets" if found["shares"] is None else "Share partitions"),
            offsets(found) if found["shares"] is None else shares(found["shares"]),
        ]
    )


def members(found: GroupDetail, bootstrap: str) -> Safe:
    if not found["members"]:
        option = "--group" if found["shares"] is None else "--share"
        command = f"ixion consume TOPIC {option} {shlex.quote(found['group'])}{bootstrap}"
        body = empty("It has no members now.", command)
        return tag("div", body, id="members", data_live=True)
    columns = [Column("member"), Column("client"), Column("host"), Column("partitions", True), Column("assigned")]
    rows: list[Sequence[Child]] = [
        (
            [
                tag("code", each["id"]),
                tag("span", f" {each['instance_id']}", class_="dim") if each["instance_id"] else None,
            ],
            each["client_id"],
            each["host"].lstrip("/"),
            each["assigned_count"],
            ", ".join(each["assigned"]) + (" …" if each["assigned_count"] > len(each["assigned"]) else ""),
        )
        for each in found["members"]
    ]
    return tag("div", table("member-rows", columns, rows, "members"), id="members", data_live=True)


def shares(found: Shares) -> Safe:
    """What a queue has delivered, and what waits."""
    if not found["rows"]:
        return tag("div", empty("Nothing was delivered to it yet."), id="offsets", data_live=True)
    columns = [
        Column("topic"),
        Column("partition", True),
        Column("start", True),
        Column("end", True),
        Column("lag", True),
        Column("available again", True),
        Column("held by members", True),
        Column("deferred", True),
    ]
    rows: list[Sequence[Child]] = [
        (
            tag("a", each["topic"], href=link("topics", each["topic"])),
            str(each["partition"]),
            *(
                value(count(number), number)
                for number in (
                    *(each["start"], each["end"], each["lag"]),
                    *(each["available"], each["acquired"], each["deferred"]),
                )
            ),
        )
        for each in found["rows"]
    ]
    left = found["partitions"] - len(found["rows"])
    return tag(
        "div",
        None if found["answered"] else tag("p", warn("The share coordinator did not answer for all of them.")),
        table("offset-rows", columns, rows, "share partitions"),
        tag("p", f"and {left:,} more", class_="about") if left else None,
        id="offsets",
        data_live=True,
    )


def offsets(found: GroupDetail) -> Safe:
    if not found["offsets"]:
        return tag("div", empty("It has committed no offsets."), id="offsets", data_live=True)
    columns = [
        Column("topic"),
        Column("partition", True),
        Column("committed", True),
        Column("end", True),
        Column("lag", True),
        Column("at", True),
    ]
    rows: list[Sequence[Child]] = [
        (
            tag("a", each["topic"], href=link("topics", each["topic"])),
            str(each["partition"]),
            count(each["committed"]),
            count(each["end"]),
            value(count(each["lag"]), each["lag"]),
            value(clock(each["committed_ms"]), each["committed_ms"]),
        )
        for each in found["offsets"]
    ]
    shown = table("offset-rows", columns, rows, "committed offsets")
    left = found["offsets_count"] - len(found["offsets"])
    return tag(
        "div", shown, tag("p", f"and {left:,} more", class_="about") if left else None, id="offsets", data_live=True
    )
