"""The records of a look as a file: JSON Lines in the form that `ixion produce --json` reads, or CSV for spreadsheets.

JSON Lines are exact. CSV is meant for people: bytes are base64, null is empty, headers are JSON, and a text that a
spreadsheet would take for a formula begins with an apostrophe.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any, Final

from ixion.broker.web.console.api.record_rows import EXPORTED, RecordRow, Text
from ixion.broker.web.console.api.records import look, on_thread, wanted_of
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError, Response

DEFAULT: Final = 500
MOST: Final = 10_000  # records; see `cost` for bytes
COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
FORMULAS: Final = ("=", "+", "-", "@", "\t", "\r")


async def export(inside: Inside, request: HttpRequest) -> Response:
    form = request.query.get("format", "jsonl")
    if form not in ("jsonl", "csv"):
        raise RefusedError(400, f"the format is jsonl or csv, not {form[:40]!r}")
    topic, wanted, number = wanted_of(inside, request, EXPORTED, DEFAULT, MOST)
    found = await look(inside, request, topic, wanted, number)
    make = as_csv if form == "csv" else as_lines
    body = await on_thread(inside, lambda: make(found["topic"], found["records"]).encode(), found["topic"])
    file = f"{found['topic']}.{form}"
    return Response(
        body,
        kind="text/csv; charset=utf-8" if form == "csv" else "application/x-ndjson",
        headers=(
            ("Content-Disposition", f'attachment; filename="{file}"'),
            ("X-Complete", "yes" if found["complete"] else "no"),
        ),
    )


def as_lines(topic: str, rows: list[RecordRow]) -> str:
    lines = [
        json.dumps(
            {
                "topic": topic,
                "partition": row["partition"],
                "offset": row["offset"],
                "timestamp": row["timestamp"],
                "key": exact(row["key"]),
                "value": exact(row["value"]),
                "headers": [[each["name"], exact(each["value"])] for each in row["headers"]],
            },
            ensure_ascii=False,
        )
        for row in rows
    ]
    return "".join(f"{line}\n" for line in lines)


def exact(text: Text) -> Any:
    if text["kind"] == "null":
        return None
    return {"base64": text["text"]} if text["kind"] == "bytes" else text["text"]


def as_csv(topic: str, rows: list[RecordRow]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in rows:
        headers = [[each["name"], exact(each["value"])] for each in row["headers"]]
        cells = (cell(row["key"]["text"]), cell(row["value"]["text"]))
        written = json.dumps(headers, ensure_ascii=False) if headers else ""
        writer.writerow((topic, row["partition"], row["offset"], row["timestamp"], *cells, written))
    return out.getvalue()


def cell(text: str) -> str:
    """A number may begin with a minus."""
    if text.startswith(FORMULAS) and not text.removeprefix("-").replace(".", "", 1).isdecimal():
        return f"'{text}"
    return text
