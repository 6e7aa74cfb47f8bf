"""The wheel and the purgatories: what waits in this broker, and for what."""

from __future__ import annotations

import json

from ixion.broker.web.console.api.purgatories import Purgatories, Purgatory
from ixion.broker.web.console.api.wheel import Wheel
from ixion.broker.web.console.views.layout import Column, empty, facts, filtering, heading, table, value
from ixion.broker.web.console.views.markup import Safe, join, tag
from ixion.broker.web.console.views.words import NONE, count, of, span


def wheel(found: Wheel) -> Safe:
    """The script draws it from the snapshots of the stream; the table says the same without a picture."""
    return join(
        [
            tag(
                "div",
                tag(
                    "div",
                    tag("h1", "The wheel"),
                    tag(
                        "p",
                        "Every timeout of this broker waits here. A task enters the ring that covers its delay, falls "
                        "inward from ring to ring as its time comes near, and runs at the centre.",
                        class_="about",
                    ),
                    facts(
                        "wheel-figures",
                        [
                            ("waiting", tag("span", count(found["size"]), data_figure="size")),
                            ("added", tag("span", NONE, data_figure="added")),
                            ("falling", tag("span", NONE, data_figure="fell")),
                            ("running", tag("span", NONE, data_figure="expired")),
                            ("cancelled", tag("span", NONE, data_figure="cancelled")),
                        ],
                    ),
                    tag(
                        "div",
                        tag("p", "Choose a bucket to see what waits in it.", class_="about"),
                        id="bucket",
                        aria_live="polite",
                    ),
                    class_="side",
                ),
                tag(
                    "div",
                    tag(
                        "canvas",
                        "The wheel as a picture; the table below says the same.",
                        id="wheel",
                        tabindex="0",
                        role="application",
                        aria_label="the timing wheel: arrow keys move from bucket to bucket, Enter lists its tasks",
                        data_wheel=json.dumps(found),
                    ),
                    class_="stage",
                ),
                class_="wheel",
            ),
            tag("details", tag("summary", "The same as a table"), levels(found)),
        ]
    )


def levels(found: Wheel) -> Safe:
    columns = [
        Column("level", True),
        Column("a bucket", True),
        Column("a turn", True),
        Column("waiting", True),
        Column("arrived so far", True),
        Column("fell from above", True),
    ]
    rows = [
        (
            count(each["level"]),
            value(span(each["tick_ms"]), each["tick_ms"]),
            value(span(each["span_ms"]), each["span_ms"]),
            count(sum(each["counts"])),
            count(each["arrived"]),
            count(each["fell_in"]),
        )
        for each in found["levels"]
    ]
    return table("levels", columns, rows, "levels of the wheel")


def purgatories(found: Purgatories, bootstrap: str) -> Safe:
    return join(
        [
            heading(
                "Purgatories",
                "Requests that cannot be answered yet, by the key of the event that would complete them.",
                filtering("/purgatories", found["query"], "operations"),
            ),
            [section(each, bootstrap) for each in found["purgatories"]],
        ]
    )


def section(each: Purgatory, bootstrap: str) -> Safe:
    ended = each["completed_at_once"] + each["completed_by_event"]
    head = tag(
        "h2",
        each["name"],
        tag("small", f"{of(each['delayed'], 'operation')} waiting, {of(each['keys'], 'key')}"),
        id=f"head-{each['name']}",
        data_live=True,
    )
    if not each["operations"]:
        text = f"Nothing waits. {each['meaning']}" + (f" {ended:,} have completed so far." if ended else "")
        command = f"ixion consume greetings{bootstrap}" if each["name"] == "Fetch" and not ended else ""
        nothing = empty(text, command) if command else tag("p", text, class_="about")
        body: Safe = tag("div", nothing, id=f"in-{each['name']}", data_live=True)
    else:
        columns = [Column("key"), Column("waits for"), Column("client"), Column("kind"), Column("left", True)]
        rows = [
            (
                row["key"],
                row["waits_for"] or tag("span", "its event", class_="dim"),
                [row["client_id"], tag("span", f" {row['address']}", class_="dim") if row["address"] else None],
                tag("span", row["kind"], class_="dim kind"),
                value(span(row["left_ms"]), row["left_ms"]),
            )
            for row in each["operations"]
        ]
        listed = table(f"rows-{each['name']}", columns, rows, f"operations in the purgatory {each['name']}")
        body = tag("div", tag("p", each["meaning"], class_="about"), listed, id=f"in-{each['name']}", data_live=True)
    return tag("section", head, body, class_="purgatory")
