"""Tables that are changed so that rows with other columns fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from ixion.pipelines.errors import PipelineError, SpecError
from ixion.pipelines.spec import read_spec
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


def test_what_no_table_takes_is_refused(lab: Lab) -> None:
    lab.send({"id": 1, "name": "one"})
    lab.run(OLD + sink("delta"))
    text = OLD.replace("id INT", "id STRING") + sink("delta", "evolve = true\n")
    with pytest.raises(PipelineError, match=r"column id of delta .* is int in the table and string in the rows"):
        lab.pipeline(text).check(lab.spark)
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
