"""The overview: well or not, the figures, the last hour, the last events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ixion.broker.web.console.api.overview import Overview
from ixion.broker.web.console.views.layout import Column, empty, facts, heading, table, value, warn
from ixion.broker.web.console.views.markup import Safe, join, tag
from ixion.broker.web.console.views.words import clock, count, measure, of, size, span

WIDTH: Final = 240
HEIGHT: Final = 56
LEAST_S: Final = 300
HOUR_S: Final = 3600


def overview(found: Overview, bootstrap: str) -> Safe:
    return join(
        [
            heading(state(found), f"up {span(found['up_ms'])}"),
            facts(
                "figures",
                [
                    ("topics", tag("a", count(found["topics"]), href="/topics")),
                    ("partitions here", count(found["partitions"])),
                    ("led here", count(found["leaders"])),
                    ("under-replicated", troubled(found["under_replicated"])),
                    ("offline", troubled(found["offline"])),
                    ("connections", tag("a", count(found["connections"]), href="/connections")),
                    ("on the wheel", tag("a", count(found["waiting"]), href="/wheel")),
                    ("in purgatories", tag("a", count(found["delayed"]), href="/purgatories")),
                    ("on disk", size(found["log_bytes"])),
                    ("memory", size(found["memory_bytes"])),
                    ("stalls of the loop", stalls(found)),
                    ("throttled", count(found["throttled"])),
                ],
            ),
            tag("h2", lately(found), id="lately", data_live=True),
            tag(
                "div",
                [curve(each["name"], each["unit"], each["values"], found["step_s"]) for each in found["curves"]],
                class_="curves",
                id="curves",
                data_live=True,
            ),
            tag(
                "div",
                tag("section", tag("h2", "What happened"), events(found)),
                tag("section", tag("h2", "Requests"), apis(found, bootstrap)),
                class_="two",
            ),
        ]
    )


def state(found: Overview) -> Safe:
    problems = list(found["problems"])
    if found["offline"]:
        problems.append(f"{of(found['offline'], 'partition')} without a leader")
    if not problems:
        return tag("span", "All is well", id="state", data_live=True)
    return tag("span", [tag("span", each, class_="warn line") for each in problems], id="state", data_live=True)


def lately(found: Overview) -> str:
    past_s = found["past_s"]
    return "The last hour" if past_s >= HOUR_S else f"The last {span(max(past_s, LEAST_S) * 1000)}"


def troubled(number: int) -> Safe:
    return warn(count(number)) if number else Safe("0")


def stalls(found: Overview) -> Safe:
    if not found["stalls"]:
        return Safe("none")
    return warn(f"{count(found['stalls'])}, longest {span(found['longest_stall_ms'])}")


def curve(name: str, unit: str, values: Sequence[float], step_s: int) -> Safe:
    """A curve as SVG. Its right end is now; the scale begins at 0."""
    top = max(values, default=0.0) or 1.0
    last = values[-1] if values else 0.0
    most = f"at most {measure(max(values, default=0.0), unit)}"
    # A history of less than five minutes does not begin at the left end.
    width = WIDTH * min(1.0, max(len(values), 2) * step_s / LEAST_S)
    step = width / max(len(values) - 1, 1)
    points = [
        f"{WIDTH - width + index * step:.1f} {HEIGHT - 2 - (HEIGHT - 6) * each / top:.1f}"
        for index, each in enumerate(values)
    ]
    line = "M" + "L".join(points) if len(points) > 1 else ""
    area = f"{line}L{WIDTH} {HEIGHT}L{WIDTH - width:.1f} {HEIGHT}Z" if line else ""
    return tag(
        "figure",
        tag("figcaption", tag("span", name), tag("b", measure(last, unit))),
        tag(
            "svg",
            tag("path", d=area, class_="area") if area else None,
            tag("path", d=line, class_="line") if line else None,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            preserveAspectRatio="none",
            role="img",
            aria_label=f"{name}: now {measure(last, unit)}, {most}",
        ),
        tag("small", most),
    )


def events(found: Overview) -> Safe:
    if not found["events"]:
        return tag(
            "div",
            empty("Nothing yet. Rebalances, refused clients, new topics and changes of leaders appear here."),
            id="events",
            data_live=True,
        )
    return tag(
        "ol",
        [
            tag("li", tag("time", clock(each["at_ms"])), " ", tag("a", each["text"], href=each["link"]))
            for each in found["events"]
        ],
        class_="events",
        id="events",
        data_live=True,
    )


def apis(found: Overview, bootstrap: str) -> Safe:
    if not found["apis"]:
        return empty("No client has asked for anything yet.", f"echo hello | ixion produce greetings{bootstrap}")
    columns = [
        Column("API"),
        Column("requests", True),
        Column("p50", True),
        Column("p99", True),
        Column("failed", True),
    ]
    rows = [
        (
            each["api"],
            value(count(each["count"]), each["count"]),
            value(span(each["p50_ms"]), each["p50_ms"]),
            value(span(each["p99_ms"]), each["p99_ms"]),
            value(troubled(each["failed"]), each["failed"]),
        )
        for each in found["apis"]
    ]
    return table("apis", columns, rows, "requests by API; times of the last minute")
