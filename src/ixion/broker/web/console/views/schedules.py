"""Schedules: histograms of what is due when, the records that come next, the partitions in which they wait."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.broker.web.console.api.schedules import ComingDue, Due, DueRow, Schedules
from ixion.broker.web.console.views.layout import Column, empty, facts, filtering, heading, pages, table, value, warn
from ixion.broker.web.console.views.markup import Child, Safe, join, link, tag
from ixion.broker.web.console.views.records import text
from ixion.broker.web.console.views.words import clock, count, size, span

Rows = list[Sequence[Child]]
LEAST_BARS = 14  # for which there is room in a histogram


def schedules(found: Schedules, coming: ComingDue, bootstrap: str) -> Safe:
    page = found["page"]
    head = heading(
        "Schedules", "Records that producers have sent for later.", filtering("/schedules", page["query"], "partitions")
    )
    if not found["schedules"]:
        return join(
            [
                head,
                empty(
                    "No partition has delayed records. A topic takes them with one setting:",
                    f"ixion topic create jobs --config delivery.delay.mode=record{bootstrap}",
                    "Then the header x-deliver-after-ms says when a record is delivered; see docs/delayed.md.",
                ),
            ]
        )
    columns = [
        Column("partition"),
        Column("waiting", True),
        Column("size", True),
        Column("in memory", True),
        Column("next look in", True),
        Column("overdue", True),
    ]
    rows: Rows = [
        (
            tag("a", f"{each['topic']}-{each['partition']}", href=link("topics", each["topic"])),
            value(
                tag("a", each["waiting"], href=link("schedules", each["topic"], str(each["partition"]))),
                each["waiting"],
            ),
            value(size(each["bytes"]), each["bytes"]),
            each["near"],
            value(span(each["next_ms"]), each["next_ms"]),
            warn(span(each["overdue_ms"])) if each["overdue_ms"] else "",
        )
        for each in found["schedules"]
    ]
    return join(
        [
            head,
            facts(
                "figures",
                [
                    ("waiting", count(found["waiting"])),
                    ("accepted", count(found["accepted"])),
                    ("delivered", count(found["delivered"])),
                    ("cancelled", count(found["cancelled"])),
                ],
            ),
            tag(
                "div",
                bars("the next minute", found["seconds"]),
                bars("the next day", found["hours"]),
                bars("later", found["days"]) if found["days"] else None,
                class_="histograms",
                id="histograms",
                data_live=True,
            ),
            tag("h2", "Due next"),
            tag("div", due(coming["due"]), id="due", data_live=True),
            tag("h2", "Partitions"),
            table("schedules", columns, rows, "partitions with delayed records"),
            pages("/schedules", page),
        ]
    )


def due(found: Sequence[DueRow]) -> Safe:
    if not found:
        return empty("Nothing waits in a bucket at this moment.")
    columns = [
        Column("due"),
        Column("in", True),
        Column("partition"),
        Column("offset", True),
        Column("id"),
        Column("key"),
        Column("value"),
    ]
    rows: Rows = [
        (
            value(clock(each["due_ms"]), each["due_ms"]),
            value(span(each["in_ms"]) if each["in_ms"] >= 0 else warn(span(each["in_ms"])), each["in_ms"]),
            [
                tag("a", f"{each['topic']}-{each['partition']}", href=link("topics", each["topic"])),
                tag("span", f" to {each['goes_to']}", class_="dim") if each["goes_to"] else None,
            ],
            count(each["offset"]),
            [each["id"], tag("span", " recurs", class_="dim") if each["recurs"] else None],
            text(each["key"]),
            text(each["value"]),
        )
        for each in found
    ]
    return table("due-rows", columns, rows, "delayed records that are due next")


def bars(title: str, found: Sequence[Due]) -> Safe:
    """A histogram as SVG: one bar for each span."""
    top = max((each["count"] for each in found), default=0) or 1
    total = sum(each["count"] for each in found)
    drawn = [
        tag(
            "rect",
            x=index * 4,
            y=f"{40 - 38 * each['count'] / top:.1f}",
            width=3,
            height=f"{38 * each['count'] / top:.1f}",
        )
        for index, each in enumerate(found)
        if each["count"]
    ]
    return tag(
        "figure",
        tag("figcaption", tag("span", f"due in {title}" if title != "later" else "due later"), tag("b", count(total))),
        tag(
            "svg",
            drawn,
            viewBox=f"0 0 {4 * max(len(found), LEAST_BARS)} 40",
            preserveAspectRatio="none",
            role="img",
            aria_label=f"{total:,} records due in {title}",
        ),
        class_="bars",
    )
