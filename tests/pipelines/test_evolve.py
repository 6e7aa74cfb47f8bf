"""Tables that are changed so that rows with other columns fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.spec import read_spec
from ixion.pipelines.spec.sinks import TableSink
from tests.pipelines.support import Lab
from tests.pipelines.test_upsert import rows

OLD = '[format]\ntype = "json"\nschema = "id INT, name STRING, place STRUCT<city: STRING>"\n'
NEW = (
    '[format]\ntype = "json"\nschema = "id BIGINT, title STRING, place STRUCT<city: STRING, zip: STRING>, extra INT"\n'
)


SHAPES = {
    "delta": (
        'properties = { "delta.logRetentionDuration" = "interval 7 days" }\n',
        ["set delta.logRetentionDuration to interval 7 days"],
    ),
    "iceberg": (
        'partition_by = ["bucket(4, id)"]\nsort_by = ["id DESC"]\n'
        'properties = { "write.parquet.page-row-limit" = 500 }\n',
        [
            "no longer partition by bucket(2, id)",
            "partition by bucket(4, id)",
            "order by id DESC",
            "set write.parquet.page-row-limit to 500",
        ],
    ),
}


def sink(kind: str, more: str = "") -> str:
    return f'[[sinks]]\ntype = "{kind}"\npath = "out"\n{more}'


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_columns_are_added_widened_renamed_and_nested(lab: Lab, kind: str) -> None:
    lab.send({"id": 1, "name": "one", "place": {"city": "X"}})
    lab.run(OLD + sink(kind, 'partition_by = ["bucket(2, id)"]\n' if kind == "iceberg" else ""))
    lab.send({"id": 1 << 40, "title": "two", "place": {"city": "Y", "zip": "7"}, "extra": 3})
    text = NEW + sink(kind, 'evolve = true\nrenames = { name = "title" }\n')
    pipeline = lab.pipeline(text)
    if kind == "delta":
        with pytest.raises(PipelineError, match=r"column id of delta .* is int in the table and bigint in the rows"):
            lab.pipeline(NEW + sink(kind)).check(lab.spark)
    planned = [
        "rename column name to title",
        "widen column id from int to bigint",
        "add column place.zip string",
        "add column extra int",
    ]
    assert [change for _, change in pipeline.check(lab.spark).changes] == planned
    against = lab.pipeline(OLD + sink(kind).replace("out", "other")).check(lab.spark, against=str(lab.folder / "out"))
    assert against.changes == ()
    pipeline.run(lab.spark)
    columns = ("id", "title", "place.city", "place.zip", "extra")
    assert rows(lab, kind, *columns) == [(1, "one", "X", None, None), (1 << 40, "two", "Y", "7", 3)]
    assert pipeline.check(lab.spark).changes == ()
    lab.send({"id": 3})
    more, said = SHAPES[kind]
    shaped = lab.pipeline('[format]\ntype = "json"\nschema = "id INT"\n' + sink(kind, f"evolve = true\n{more}"))
    assert [change for _, change in shaped.check(lab.spark).changes] == said
    shaped.run(lab.spark)
    assert shaped.check(lab.spark).changes == ()
    assert rows(lab, kind, *columns)[1] == (3, None, None, None, None)


def test_fields_of_structs_that_the_rows_lack_are_null(lab: Lab) -> None:
    changed = 'keys = ["id"]\norder = "id2"\nevolve = true\n'
    tables = [("iceberg", "evolve = true\n")]
    tables += [(kind, f'mode = "{mode}"\n{changed}') for kind in ("delta", "iceberg") for mode in ("upsert", "scd2")]
    sinks = "".join(sink(kind, more).replace("out", f"out{number}") for number, (kind, more) in enumerate(tables))
    types = "id INT, id2 INT, x STRUCT<a: INT, b: INT>, y ARRAY<STRUCT<a: INT, b: INT>>"
    text = f'[format]\ntype = "json"\nschema = "{types}"\n{sinks}'
    lab.send({"id": 1, "id2": 1, "x": {"a": 1, "b": 1}, "y": [{"a": 1, "b": 1}]})
    lab.run(text)
    lab.send({"id": 1, "id2": 2, "x": {"a": 2}, "y": [{"a": 2}]}, {"id": 2, "id2": 2})
    lab.run(text.replace(", b: INT", ""))
    for number, (kind, _) in enumerate(tables):
        table = lab.spark.read.format(kind).load(str(lab.folder / f"out{number}"))
        found = sorted(tuple(row) for row in table.selectExpr("id", "id2", "to_json(struct(x, y))").collect())
        assert found[-2:] == [(1, 2, '{"x":{"a":2},"y":[{"a":2}]}'), (2, 2, "{}")]


def goes_into(rows: str, table: str) -> bool:
    from pyspark.sql import types as T

    from ixion.pipelines.sinks.fit import _goes_into

    return _goes_into(T.DataType.fromDDL(rows), T.DataType.fromDDL(table), "iceberg")


def test_what_no_table_takes_is_refused(lab: Lab) -> None:
    from pyspark.sql import types as T

    from ixion.pipelines.sinks.fit import _fits

    lab.send({"id": 1, "name": "one"})
    lab.run(OLD + sink("delta"))
    text = OLD.replace("id INT", "id STRING") + sink("delta", "evolve = true\n")
    with pytest.raises(PipelineError, match=r"column id of delta .* is int in the table and string in the rows"):
        lab.pipeline(text).check(lab.spark)
    for wide, narrow in (
        ("DOUBLE", "INT"),
        ("BIGINT", "INT"),
        ("DECIMAL(12, 4)", "DECIMAL(10, 2)"),
        ("BIGINT", "FLOAT"),
    ):
        assert not goes_into(wide, narrow)  # Iceberg would store 1 for 1.9
        assert goes_into(narrow, "STRING")
    for narrow, wide in (("INT", "DOUBLE"), ("INT", "DECIMAL(10, 0)"), ("FLOAT", "DOUBLE"), ("SMALLINT", "BIGINT")):
        assert goes_into(narrow, wide)
    inner = TableSink(format="iceberg", path="t", evolve=True)
    kinds = [T.DataType.fromDDL(f"ARRAY<STRUCT<a: {kind}>>") for kind in ("INT", "BIGINT", "DOUBLE")]
    assert [_fits(kind, kinds[0], inner, grows=False) for kind in kinds] == [True, True, False]  # as it is, widened
    twice = OLD + sink("delta", 'evolve = true\nrenames = { id = "name" }\n')
    with pytest.raises(PipelineError, match="already has a column name, so id cannot be renamed to it"):
        lab.pipeline(twice).check(lab.spark)
    with pytest.raises(PipelineError, match=r"there is no table delta .*/nowhere"):
        lab.pipeline(OLD + sink("delta")).check(lab.spark, against=str(lab.folder / "nowhere"))


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("delta", 'renames = { a = "b" }', "they need evolve = true"),
        ("parquet", 'evolve = true\nrenames = { a = "b" }', "the columns of a parquet table cannot be renamed"),
    ],
)
def test_mistakes_in_the_file(kind: str, settings: str, said: str) -> None:
    text = f'[source]\ntopics = ["t"]\n[format]\ntype = "json"\n[[sinks]]\ntype = "{kind}"\npath = "x"\n{settings}\n'
    with pytest.raises(SpecError) as caught:
        read_spec(text, folder=Path("/tmp"))
    assert said in str(caught.value)
