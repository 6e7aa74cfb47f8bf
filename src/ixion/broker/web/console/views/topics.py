"""Topics, one topic, and its records."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.broker.web.console.api.records import RecordRow, Records, Text
from ixion.broker.web.console.api.topics import Topic, Topics
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
from ixion.broker.web.console.views.words import clock, count, of, size


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
                    ("records here", count(records)),
                    ("size here", size(sum(each["bytes"] or 0 for each in kept))),
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
            str(each["leader"]) if each["leader"] >= 0 else warn("none"),
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


def records(found: Records, given: dict[str, str], bootstrap: str) -> Safe:
    name = found["topic"]
    path = link("topics", name, "records")
    total = sum(each["end"] - each["start"] for each in found["places"])
    query = {key: given[key] for key in ("q", "partition", "offset", "since", "limit") if given.get(key)}
    command = f"ixion consume {name} --exit-at-end"
    if found["partition"] is not None:
        command += f" --partition {found['partition']}"
    return join(
        [
            heading(
                [tag("a", name, href=link("topics", name)), " records"],
                f"{of(total, 'offset')} in {of(len(found['places']), 'partition')}",
            ),
            tag(
                "form",
                field("search", "q", "text in key, value or header", found["query"]),
                field("number", "partition", "partition", query.get("partition", ""), minimum=0),
                field("number", "offset", "from offset", query.get("offset", ""), minimum=0),
                field("text", "since", "time, or -10m", query.get("since", "")),
                tag("button", "Look", type="submit"),
                tag(
                    "button",
                    "Follow",
                    type="button",
                    id="follow",
                    data_tail=link(
                        "api", "v1", "topics", name, "tail", q=found["query"], partition=query.get("partition")
                    ),
                    hidden=True,
                ),
                tag("a", "Export", href=link("api", "v1", "topics", name, "export", **query), download=True),
                action=path,
                class_="filter wide",
            ),
            tag("p", summary(found), class_="about", id="summary", aria_live="polite"),
            rows_of(found["records"]) if found["records"] else nothing(found, bootstrap),
            further(found, query),
            tag("p", "The same in a terminal: ", tag("code", command + bootstrap, data_copy=True), class_="about"),
        ]
    )


def field(kind: str, name: str, what: str, shown: str, *, minimum: int | None = None) -> Safe:
    return tag("input", type=kind, name=name, value=shown, placeholder=what, aria_label=what, min=minimum)


def summary(found: Records) -> str:
    if found["not_here"]:
        there = ", ".join(map(str, found["not_here"]))
        return f"Other brokers lead partitions {there}: their pages show these records."
    if found["query"]:
        rest = "" if found["complete"] else " The search ended there; give an offset to go on."
        return f"{of(len(found['records']), 'record')} of {of(found['searched'], 'record')} searched.{rest}"
    return "" if found["complete"] else "The newest of the partitions that one look covers."


def nothing(found: Records, bootstrap: str) -> Safe:
    if found["query"]:
        body = empty("No record that was searched has this text.")
    else:
        body = empty("There is no record here.", f"echo hello | ixion produce {found['topic']}{bootstrap}")
    return join([body, rows_of([])])


def rows_of(found: Sequence[RecordRow]) -> Safe:
    return tag(
        "ol", [record(each) for each in found], class_="records", id="records", aria_label="records", data_rows=True
    )


def record(each: RecordRow) -> Safe:
    """One record. The script of the tail makes the same elements."""
    headers = [tag("div", tag("dt", header["name"]), tag("dd", text(header["value"]))) for header in each["headers"]]
    return tag(
        "li",
        tag(
            "p",
            tag("span", f"{each['partition']}:{each['offset']}", class_="place"),
            tag("time", clock(each["timestamp"]), title=str(each["timestamp"])),
            tag("span", size(each["size"]), class_="dim"),
            class_="where",
        ),
        tag("div", text(each["key"]), class_="key") if each["key"]["kind"] != "null" else None,
        tag("div", text(each["value"]), class_="value"),
        tag("dl", headers, class_="headers") if headers else None,
        tabindex="0",
    )


def text(found: Text) -> Safe:
    """Bytes that are no text are shown as base64."""
    if found["kind"] == "null":
        return tag("span", "null", class_="dim")
    note = " … " + size(found["size"]) if found["cut"] else ""
    kind = tag("span", "base64 ", class_="dim") if found["kind"] == "bytes" else None
    return join([kind, tag("code", found["text"]), tag("span", note, class_="dim") if note else None])


def further(found: Records, query: dict[str, str]) -> Safe | None:
    following = found["next_offset"]
    if following is None or not found["places"] or following >= found["places"][0]["end"]:
        return None
    rest = {name: given for name, given in query.items() if name not in ("offset", "since")}
    segments = ("topics", found["topic"], "records")
    return tag("p", tag("a", "later records →", href=link(*segments, **rest, offset=following)), class_="pages")
