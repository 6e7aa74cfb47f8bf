"""Topics, and one topic."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.broker.web.console.api.topics import PartitionRow, Topic, Topics
from ixion.broker.web.console.views.layout import (
    Column,
    empty,
    facts,
    filtering,
    heading,
    pages,
    table,
    value,
    warn,
)
from ixion.broker.web.console.views.markup import Child, Safe, join, link, tag
from ixion.broker.web.console.views.words import count, of, size


def topics(found: Topics, bootstrap: str) -> Safe:
    page = found["page"]
    head = heading("Topics", of(page["total"], "topic"), filtering("/topics", page["query"], "topics"))
    if not found["topics"]:
        if page["query"]:
            return join([head, empty(f"No topic has {page['query']!r} in its name.")])
        return join(
            [
                head,
                empty(
                    "There is no topic yet. This creates one:", f"ixion topic create orders --partitions 3{bootstrap}"
                ),
            ]
        )
    columns = [
        Column("topic"),
        Column("partitions", True),
        Column("replicas", True),
        Column("records", True),
        Column("size", True),
        Column("delayed", True),
        Column("state"),
    ]
    rows: list[Sequence[Child]] = [
        (
            tag("a", each["name"], href=link("topics", each["name"])),
            each["partitions"],
            each["replicas"],
            value(count(each["records"]), each["records"]),
            value(size(each["bytes"]), each["bytes"]),
            each["delayed"],
            condition(each["under_replicated"], each["offline"], each["internal"]),
        )
        for each in found["topics"]
    ]
    return join([head, table("topics", columns, rows, "topics"), pages("/topics", page)])


def condition(under: int, offline: int, internal: bool) -> Child:
    if offline:
        return warn(f"{offline:,} offline")
    if under:
        return warn(f"{under:,} under-replicated")
    return tag("span", "internal" if internal else "ok", class_="dim")


def topic(found: Topic, bootstrap: str) -> Safe:
    name = found["name"]
    path = link("topics", name)
    kept = [each for each in found["partitions"] if each["end"] is not None]
    records = sum((each["end"] or 0) - (each["start"] or 0) for each in kept)
    return join(
        [
            heading(
                name,
                "internal topic" if found["internal"] else "",
                tag("p", tag("a", "Read the records →", href=link("topics", name, "records"), class_="act")),
            ),
            facts(
                "figures",
                [
                    ("partitions", count(found["page"]["total"])),
                    ("records", count(records)),
                    ("size", size(sum(each["bytes"] or 0 for each in kept))),
                    ("id", tag("code", found["id"])),
                ],
            ),
            tag("h2", "Partitions"),
            partitions(found),
            pages(path, found["page"]),
            tag("h2", "Groups that read it"),
            groups(found, bootstrap),
            tag("h2", "Settings of its own"),
            settings(found, bootstrap),
        ]
    )


def partitions(found: Topic) -> Safe:
    columns = [
        Column("partition", True),
        Column("leader", True),
        Column("replicas"),
        Column("in sync"),
        Column("start", True),
        Column("end", True),
        Column("high watermark", True),
        Column("size", True),
        Column("segments", True),
        Column("producers", True),
    ]
    rows: list[Sequence[Child]] = [
        (
            tag("a", str(each["number"]), href=link("topics", found["name"], "records", partition=each["number"])),
            leader(each),
            ", ".join(map(str, each["replicas"])),
            in_sync(each["isr"], each["replicas"]),
            count(each["start"]),
            count(each["end"]),
            count(each["high_watermark"]),
            value(size(each["bytes"]), each["bytes"]),
            count(each["segments"]),
            count(each["producers"]),
        )
        for each in found["partitions"]
    ]
    return table("partitions", columns, rows, "partitions")


def leader(each: PartitionRow) -> Child:
    if each["leader"] < 0:
        return warn("none")
    return warn(f"{each['leader']} does not answer") if each["silent"] else str(each["leader"])


def in_sync(isr: list[int], replicas: list[int]) -> Child:
    text = ", ".join(map(str, isr)) or "none"
    return text if len(isr) == len(replicas) else warn(text)


def groups(found: Topic, bootstrap: str) -> Safe:
    if not found["groups"]:
        name = found["name"]
        body = empty("No group has committed offsets of it.", f"ixion consume {name} --group readers{bootstrap}")
        return tag("div", body, id="groups", data_live=True)
    columns = [Column("group"), Column("partitions", True), Column("lag", True)]
    rows: list[Sequence[Child]] = [
        (tag("a", each["group"], href=link("groups", each["group"])), each["partitions"], each["lag"])
        for each in found["groups"]
    ]
    return tag("div", table("group-rows", columns, rows, "groups"), id="groups", data_live=True)


def settings(found: Topic, bootstrap: str) -> Safe:
    if not found["settings"]:
        return empty(
            "None: it has the settings of the broker.",
            f"ixion config set topic {found['name']} retention.ms=86400000{bootstrap}",
        )
    rows: list[Sequence[Child]] = [
        (tag("code", each["name"]), each["value"] if each["value"] is not None else "hidden")
        for each in found["settings"]
    ]
    return table("settings", [Column("setting"), Column("value")], rows, "settings")
