"""The view of pipelines."""

from __future__ import annotations

from ixion.broker.web.console.api.pipelines import PipelineRow, Pipelines
from ixion.broker.web.console.views.layout import Column, empty, heading, table, value, warn
from ixion.broker.web.console.views.markup import Child, Safe, join, tag
from ixion.broker.web.console.views.words import NONE, count, of, span


def pipelines(found: Pipelines) -> Safe:
    rows = found["pipelines"]
    head = heading("Pipelines", of(len(rows), "pipeline") if found["folders"] else "")
    lost = [tag("p", warn(each)) for each in found["missing"]]
    if not rows:
        return join(
            [
                head,
                lost,
                empty(
                    "No checkpoint of a pipeline is known to this broker."
                    if not found["folders"]
                    else "The folders that web.pipelines names have no checkpoint yet.",
                    "ixion serve -o web.pipelines=/home/me/checkpoints",
                    "A folder is the checkpoint of a pipeline, or holds some.",
                ),
            ]
        )
    columns = [
        Column("pipeline"),
        Column("state"),
        Column("topics"),
        Column("batch", True),
        Column("last batch at"),
        Column("rows/s", True),
        Column("lag", True),
        Column("took", True),
        Column("folder"),
    ]
    lines = [summary(each) for each in rows]
    whole = table("pipelines", columns, lines, "pipelines")
    more = None if found["complete"] else tag("p", "There are more, which are not shown.", class_="about")
    return join([head, lost, whole, more, [one(number, each) for number, each in enumerate(rows)]])


def summary(row: PipelineRow) -> list[Child]:
    last = row["batches"][0] if row["batches"] else None
    batch, rate, lag, took_ms = (
        (None,) * 4 if last is None else (last["batch"], last["rows_per_s"], last["lag"], last["duration_ms"])
    )
    state = warn(row["state"]) if row["state"] == "failed" else row["state"]
    return [
        row["name"],
        warn(row["problem"]) if row["problem"] else state,
        ", ".join(row["topics"]),
        value(count(batch), batch),
        NONE if last is None else moment(last["at"]),
        value(count(rate), rate),
        value(count(lag), lag),
        value(span(took_ms), took_ms),
        tag("span", row["folder"], class_="dim"),
    ]


def one(number: int, row: PipelineRow) -> Safe:
    """Its last batches and runs, and why rows were quarantined."""
    batches = [
        (
            value(count(each["batch"]), each["batch"]),
            moment(each["at"]),
            value(count(each["rows_in"]), each["rows_in"]),
            value(count(each["rows_out"]), each["rows_out"]),
            value(warn(count(each["quarantined"])) if each["quarantined"] else "0", each["quarantined"]),
            value(count(each["lag"]), each["lag"]),
            value(span(each["duration_ms"]), each["duration_ms"]),
        )
        for each in row["batches"]
    ]
    runs = [
        (
            tag("code", each["id"][:8]),
            moment(each["began"]),
            moment(each["ended"]) if each["ended"] else NONE,
            warn(each["outcome"]) if each["outcome"] == "failed" else each["outcome"],
            value(count(each["rows_in"]), each["rows_in"]),
            value(count(each["rows_out"]), each["rows_out"]),
            value(count(each["quarantined"]), each["quarantined"]),
            each["error"],
        )
        for each in row["runs"]
    ]
    reasons = ", ".join(f"{each['expectation']}: {each['rows']:,}" for each in row["broken"])
    name = row["name"]
    return join(
        [
            tag("h2", name, tag("small", f"rows that break an expectation: {reasons}") if reasons else None),
            table(
                f"batches-{number}",
                [
                    Column("batch", True),
                    Column("at"),
                    *(Column(each, True) for each in ("in", "out", "quarantined", "lag", "took")),
                ],
                batches,
                f"batches of {name}",
            )
            if batches
            else tag("p", "No batch yet.", class_="about"),
            tag("h2", "Its runs") if runs else None,
            table(
                f"runs-{number}",
                [
                    *(Column(each) for each in ("run", "began", "ended", "outcome")),
                    *(Column(each, True) for each in ("in", "out", "quarantined")),
                    Column("error"),
                ],
                runs,
                f"runs of {name}",
            )
            if runs
            else None,
        ]
    )


def moment(text: str) -> str:
    """ISO 8601 without the parts of a second."""
    return text[:19].replace("T", " ")
