"""Tables with one row for each key: changed, deleted, late, repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.spec import read_spec
from tests.pipelines.crash import crash_after_a_batch
from tests.pipelines.support import Lab

KINDS = ("delta", "iceberg")
KEYED = 'include = ["key", "offset", "tombstone"]'
BY_KEY = """
[format]
type = "json"
schema = "name STRING"
[[steps]]
sql = "SELECT kafka_key AS id, name, kafka_offset, kafka_tombstone FROM stream"
"""
BY_TIME = """
[format]
type = "json"
schema = "id INT, name STRING, at INT, gone BOOLEAN"
"""


def sink(kind: str, more: str = "", path: str = "out") -> str:
    return f'[[sinks]]\ntype = "{kind}"\npath = "{path}"\nmode = "upsert"\nkeys = ["id"]\n{more}'


def both(more: str = "") -> str:
    """A table of each kind, named after it: one run of a pipeline tests both."""
    return "".join(sink(kind, more, path=kind) for kind in KINDS)


def rows(lab: Lab, kind: str, *columns: str, path: str = "out") -> list[tuple[Any, ...]]:
    from ixion.pipelines.sinks.iceberg import iceberg_name, refresh
    from ixion.pipelines.spec.sinks import TableSink

    if kind == "iceberg":
        refresh(iceberg_name(TableSink(format=kind, path=str(lab.folder / path)), lab.spark), lab.spark)
    table = lab.spark.read.format(kind).load(str(lab.folder / path))
    return sorted(tuple(row) for row in table.select(*columns).collect())


def in_both(lab: Lab, *columns: str) -> list[tuple[Any, ...]]:
    """The rows of both tables, which are the same."""
    delta, iceberg = (rows(lab, kind, *columns, path=kind) for kind in KINDS)
    assert delta == iceberg
    return delta


def put(lab: Lab, key: str | None, value: dict[str, Any] | None) -> None:
    lab.send(value, key=key)


def test_the_last_record_of_a_key_counts_and_a_tombstone_deletes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    text = BY_KEY + both()
    for key, value in (("a", {"name": "A"}), ("b", {"name": "B"}), ("a", {"name": "AA"}), ("c", None)):
        put(lab, key, value)
    put(lab, None, {"name": "nobody"})
    figures = lab.run(text, source=KEYED)
    assert (figures.rows_in, figures.rows_out, figures.quarantined) == (5, 4, 1)
    assert in_both(lab, "id", "name", "kafka_offset") == [("a", "AA", 2), ("b", "B", 1)]
    for key, value in (("b", None), ("c", {"name": "C"}), ("a", {"name": "AAA"})):
        put(lab, key, value)
    with crash_after_a_batch(monkeypatch):
        lab.run(text, source=KEYED)
    assert in_both(lab, "id", "name") == [("a", "AAA"), ("c", "C")]
    assert lab.run(text, source=KEYED).batches == 1  # it comes again
    assert in_both(lab, "id", "name") == [("a", "AAA"), ("c", "C")]
    (lab.folder / ".ixion").rename(lab.folder / "lost")
    for kind in KINDS:
        with pytest.raises(PipelineError, match=r"has rows of this pipeline, but the checkpoint .* is new"):
            lab.run(BY_KEY + sink(kind, path=kind), source=KEYED)
    lab.pipeline(text, source=KEYED).run(lab.spark, again=True)  # all changes once more, to the same end
    assert in_both(lab, "id", "name") == [("a", "AAA"), ("c", "C")]


def test_changes_that_come_late_are_left_out(lab: Lab) -> None:
    """In the batch of the change that they come after, and in a later one."""
    text = BY_TIME + both('order = "at"\ndelete_when = "gone"\n')

    def change(number: int, name: str, at: int, gone: bool = False) -> None:
        lab.send({"id": number, "name": name, "at": at, "gone": gone})

    change(1, "second", 20)
    change(1, "first", 10)
    change(2, "old", 10)
    change(3, "gone early", 10, gone=True)
    change(4, "old", 10)
    change(4, "gone", 30, gone=True)
    lab.run(text)
    change(1, "late", 15)
    change(1, "third", 30)
    change(2, "old", 30, gone=True)
    change(2, "late", 20)
    change(3, "late", 5)
    change(4, "late", 20)
    lab.run(text)
    assert in_both(lab, "id", "name", "at", "is_deleted") == [
        (1, "third", 30, False),
        (2, "old", 30, True),
        (3, "gone early", 10, True),
        (4, "gone", 30, True),
    ]


def test_debezium_envelopes_become_rows(lab: Lab) -> None:
    def change(op: str, before: Any, after: Any, at: int) -> dict[str, Any]:
        return {
            "payload": {"before": before, "after": after, "op": op, "ts_ms": at, "source": {"db": "x"}},
            "schema": {},
        }

    one, two = {"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}
    lab.send(
        change("r", None, one, 1), change("c", None, two, 2), change("u", one, {**one, "name": "Ida", "vip": 1}, 3)
    )
    lab.send(change("d", two, None, 4), None, "broken")
    text = '[format]\ntype = "debezium"\nschema = "id INT, name STRING"\nwrapped = true\n' + sink("delta")
    figures = lab.run(text, source='include = ["offset"]')
    assert (figures.rows_in, figures.quarantined, figures.dropped, figures.drifted) == (6, 1, 1, 1)
    assert figures.new_fields == {"payload.after.vip": "left out"}  # of the rows, not of the envelope
    assert rows(lab, "delta", "id", "name", "change_op", "change_ms") == [(1, "Ida", "u", 3)]
    bare, empty = change("c", None, {"id": 3}, 5)["payload"], change("t", None, None, 6)
    lab.send(bare, empty, {"id": 4})  # nothing of these becomes a row of nulls, with or without keys
    added = text.replace("wrapped = true", "").partition('mode = "upsert"')[0]
    figures = lab.run(added.replace("out", "added"), name="added")
    assert (figures.rows_out, figures.quarantined, figures.dropped) == (1, 7, 1)
    figures = lab.run(text, source='include = ["offset"]')
    assert (figures.rows_out, figures.quarantined) == (0, 3)
    bad = lab.spark.read.format("delta").load(str(lab.folder / "out_quarantine"))
    assert sorted(row.reason for row in bad.where("offset > 5").collect()) == [
        "not an envelope of Debezium",
        "the envelope has no row; its op is t",
        "the envelope is not in a field payload: wrapped is true; see format.wrapped",
    ]


def test_what_cannot_be_merged_is_found_by_check(lab: Lab) -> None:
    with pytest.raises(PipelineError, match="orders changes by kafka_offset, but the rows have no such column"):
        lab.pipeline(BY_TIME + sink("delta")).check(lab.spark)
    with pytest.raises(PipelineError, match=r"keys of delta .* there is no column id"):
        lab.pipeline(BY_TIME.replace("id INT", "number INT") + sink("delta", 'order = "at"\n')).check(lab.spark)
    with pytest.raises(PipelineError, match="there is no column gon"):
        lab.pipeline(BY_TIME + sink("delta", 'order = "at"\ndelete_when = "gon"\n')).check(lab.spark)


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("parquet", 'mode = "upsert"\nkeys = ["id"]', "rows of a parquet sink cannot be changed"),
        ("delta", 'mode = "upsert"', "needs keys"),
        ("delta", 'keys = ["id"]', 'is for mode = "upsert"'),
        ("delta", 'mode = "upsert"\nkeys = ["id"]\norder = "id"', "which is one of the keys"),
        ("delta", 'mode = "upsrt"', "did you mean 'upsert'"),
    ],
)
def test_mistakes_in_the_file(kind: str, settings: str, said: str) -> None:
    text = f'[source]\ntopics = ["t"]\n[format]\ntype = "json"\n[[sinks]]\ntype = "{kind}"\npath = "x"\n{settings}\n'
    with pytest.raises(SpecError) as caught:
        read_spec(text, folder=Path("/tmp"))
    assert said in str(caught.value)
