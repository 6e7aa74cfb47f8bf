"""The brokers of the cluster, and moves of replicas under way."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.broker.web.console.api.brokers import BrokerRow, Brokers
from ixion.broker.web.console.views.layout import Column, empty, heading, table, value, warn
from ixion.broker.web.console.views.markup import Child, Safe, join, link, tag
from ixion.broker.web.console.views.words import NONE, count, of, size, span

Rows = list[Sequence[Child]]


def brokers(found: Brokers, bootstrap: str) -> Safe:
    alone = len(found["brokers"]) == 1
    silent = sum(not each["answered"] for each in found["brokers"])
    said = of(len(found["brokers"]), "broker") + (f", {silent} did not answer" if silent else "")
    columns = [
        Column("broker"),
        Column("listeners"),
        Column("rack"),
        Column("role"),
        Column("leads", True),
        Column("replicas", True),
        Column("not in sync", True),
        Column("disk free", True),
        Column("answered in", True),
    ]
    rows: Rows = [
        (
            [str(each["id"]), tag("span", " this one", class_="dim") if each["is_this"] else None],
            ", ".join(each["endpoints"]) or warn("not registered"),
            each["rack"] or NONE,
            "controller" if each["is_controller"] else "",
            each["leaders"],
            each["replicas"],
            value(warn(count(each["out_of_sync"])) if each["out_of_sync"] else "0", each["out_of_sync"]),
            value(room(each), each["free_bytes"]),
            value(NONE if each["answer_ms"] is None else span(each["answer_ms"]), each["answer_ms"]),
        )
        for each in found["brokers"]
    ]
    return join(
        [
            heading("Brokers", said),
            tag("div", troubles(found["brokers"]), id="troubles", data_live=True),
            table("brokers", columns, rows, "brokers"),
            empty("This broker is alone. Three of them on this machine:", "ixion cluster up") if alone else None,
            None if alone else tag("h2", "Moves under way"),
            None if alone else tag("div", moves(found, bootstrap), id="moves", data_live=True),
        ]
    )


def troubles(found: Sequence[BrokerRow]) -> list[Safe]:
    said = [each["why"] for each in found if not each["answered"] and each["why"]]
    said += [f"broker {each['id']} cannot use {path}" for each in found for path in each["bad_directories"]]
    return [tag("p", warn(each[:1].upper() + each[1:])) for each in said]


def room(each: BrokerRow) -> str:
    if each["free_bytes"] is None or not each["disk_bytes"]:
        return NONE
    return f"{size(each['free_bytes'])}, {100 * each['free_bytes'] // each['disk_bytes']} %"


def moves(found: Brokers, bootstrap: str) -> Safe:
    if not found["moves"]:
        return empty("No replica is being moved.", f"ixion cluster reassign TOPIC --to 1,2{bootstrap}")
    rows: Rows = [
        (
            tag("a", f"{each['topic']}-{each['partition']}", href=link("topics", each["topic"])),
            ", ".join(map(str, each["replicas"])),
            ", ".join(f"{number}" + (" in sync" if number in each["caught_up"] else "") for number in each["adding"]),
            ", ".join(map(str, each["removing"])),
        )
        for each in found["moves"]
    ]
    left = found["moves_count"] - len(found["moves"])
    columns = [Column("partition"), Column("replicas"), Column("adding"), Column("removing")]
    return join(
        [
            table("move-rows", columns, rows, "moves of replicas"),
            tag("p", f"and {left:,} more", class_="about") if left else None,
        ]
    )
