"""`mode = "scd2"`: every change is a version, valid until the next; also if it comes late."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.pipelines.errors import SpecError
from ixion.pipelines.spec import read_spec
from tests.pipelines.support import Lab

FORMAT = '[format]\ntype = "json"\nschema = "id INT, at INT, city STRING, gone BOOLEAN"\n'
SINKS = """
[[sinks]]
type = "delta"
path = "by_column"
mode = "scd2"
keys = ["id"]
order = "at"
delete_when = "gone"
[[sinks]]
type = "iceberg"
path = "by_offset"
mode = "scd2"
keys = ["id"]
delete_when = "gone"
"""
SOURCE = 'include = ["offset"]'


def change(id: int, at: int, city: str | None = None) -> dict[str, Any]:  # noqa: A002 - the name of the field
    return {"id": id, "at": at, "city": city, "gone": city is None}


def test_changes_that_come_late_land_between_their_neighbours(lab: Lab) -> None:
    def versions(kind: str, path: str, *more: str) -> list[tuple[Any, ...]]:
        names = ("id", "city", "valid_from", "valid_to", "is_current", *more)
        rows = lab.spark.read.format(kind).load(f"{lab.folder}/{path}").select(*names).collect()
        return sorted((tuple(row) for row in rows), key=lambda row: (row[0], row[2]))

    lab.send(change(7, 9, "Bern"), change(7, 12, "Basel"), change(8, 5), change(9, 1, "Chur"))
    assert lab.run(FORMAT + SINKS, source=SOURCE).rows_out == 4
    # Late: between the two of 7, and of 8 before its delete; 9 is deleted, then comes back; a repetition of Basel.
    lab.send(change(7, 10, "Biel"), change(8, 3, "Thun"), change(9, 2), change(9, 4, "Cham"), change(7, 12, "Basel"))
    lab.run(FORMAT + SINKS, source=SOURCE)
    assert versions("delta", "by_column", "is_deleted") == [
        (7, "Bern", 9, 10, False, False),
        (7, "Biel", 10, 12, False, False),
        (7, "Basel", 12, None, True, False),
        (8, "Thun", 3, 5, False, False),
        (8, None, 5, None, True, True),
        (9, "Chur", 1, 2, False, False),
        (9, None, 2, 4, False, True),
        (9, "Cham", 4, None, True, False),
    ]
    # By the offset the order is that of the topic, and a delete is just an end.
    assert versions("iceberg", "by_offset") == [
        (7, "Bern", 0, 1, False),
        (7, "Basel", 1, 4, False),
        (7, "Biel", 4, 8, False),
        (7, "Basel", 8, None, True),
        (8, "Thun", 5, None, True),
        (9, "Chur", 3, 6, False),
        (9, "Cham", 7, None, True),
    ]
    # Of the table alone, a delete is known by the end that it gave to a version: it stays when the key comes again.
    from ixion.pipelines.sinks.history import chain
    from ixion.pipelines.spec.upsert import UpsertSpec

    table = lab.spark.createDataFrame(
        [(9, "Chur", 3, 3, 6, False), (9, "Cham", 7, 7, None, True), (5, "Olten", 1, 1, None, True)],
        "id INT, city STRING, kafka_offset INT, valid_from INT, valid_to INT, is_current BOOLEAN",
    )
    new = lab.spark.createDataFrame([(9, "Sion", 9, False)], "id INT, city STRING, kafka_offset INT, _delete BOOLEAN")
    found = chain(new, table, ["id", "city", "kafka_offset"], UpsertSpec(keys=("id",), history=True), "_delete")
    rows = found.select("id", "city", "valid_from", "valid_to").orderBy("valid_from").collect()
    assert [tuple(row) for row in rows] == [(9, "Chur", 3, 6), (9, "Cham", 7, 9), (9, "Sion", 9, None)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('mode = "scd2"', 'mode = "scd2" needs keys'),
        ('mode = "scd1"\nkeys = ["id"]', "sinks\\[1\\].mode is 'scd1'"),
        ('keys = ["id"]', 'is for mode = "upsert" or "scd2"'),
    ],
)
def test_a_history_is_declared_as_upserts_are(lines: str, message: str) -> None:
    head = '[source]\ntopics = ["t"]\n'
    with pytest.raises(SpecError, match=message):
        read_spec(f'{head}{FORMAT}[[sinks]]\ntype = "delta"\npath = "x"\n{lines}\n')
