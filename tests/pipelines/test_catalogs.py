"""Catalogs, partitions, orders and properties as a file declares them; without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from devtools.parts import need_module
from ixion.pipelines.errors import SpecError
from ixion.pipelines.spark.jars import needed
from ixion.pipelines.spec import read_spec
from ixion.pipelines.spec.shape import parts_of
from ixion.pipelines.spec.sinks import TableSink

HEAD = '[source]\ntopics = ["t"]\n[format]\ntype = "text"\n'
SINK = '[[sinks]]\ntype = "iceberg"\ntable = "shop.db.orders"\n'


def test_catalogs_become_settings_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hidden")
    text = """
[catalogs.shop]
type = "jdbc"
uri = "jdbc:postgresql://db/catalog"
warehouse = "s3://lake"
user = "me"
password = "${SECRET}"
[catalogs.shop.options]
"jdbc.init-catalog-tables" = "true"
[catalogs.other]
type = "rest"
uri = "https://rest"
credential = "id:${SECRET}"
"""
    spec = read_spec(HEAD + SINK + text)
    shop, other = spec.catalogs
    start = "spark.sql.catalog.shop"
    assert shop.conf() == {
        start: "org.apache.iceberg.spark.SparkCatalog",
        f"{start}.type": "jdbc",
        f"{start}.cache-enabled": "false",
        f"{start}.uri": "jdbc:postgresql://db/catalog",
        f"{start}.warehouse": "s3://lake",
        f"{start}.jdbc.user": "me",
        f"{start}.jdbc.password": "hidden",
        f"{start}.jdbc.schema-version": "V1",
        f"{start}.jdbc.init-catalog-tables": "true",
    }
    assert other.conf()["spark.sql.catalog.other.credential"] == "id:hidden"
    assert "hidden" not in repr(spec)
    assert "postgresql" in [one.artifact for one in needed("4.0.0", spec.formats())]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[catalogs.a]\ntype = "rest"\n', "a rest catalog needs uri"),
        ('[catalogs.a]\ntype = "jdbc"\nuri = "jdbc:x:y"\n', "a jdbc catalog needs warehouse"),
        ('[catalogs.a]\ntype = "rset"\n', "catalogs.a.type is 'rset'; did you mean 'rest'"),
        ('[catalogs.a]\ntype = "hive"\nuri = "x"\npassword = "y"\n', "catalogs.a.password is not known here"),
        ('[catalogs."a.b"]\ntype = "glue"\n', "a catalog cannot be called"),
    ],
)
def test_mistakes_in_catalogs(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_spec(HEAD + SINK + text)


def test_partitions_are_columns_or_transforms() -> None:
    assert parts_of("day") == ("", "", "day")
    assert parts_of("days( `at` )") == ("days", "", "at")
    assert parts_of("bucket(16,id)") == ("bucket", "16", "id")


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("iceberg", 'partition_by = ["weeks(at)"]', "which is no partition"),
        ("delta", 'partition_by = ["days(at)"]', "which is no partition"),
        ("delta", 'sort_by = ["at"]', "has no sort order"),
        ("iceberg", 'sort_by = ["at; DROP TABLE x"]', "write a column"),
        ("parquet", 'properties = { a = "b" }', "has no properties"),
        ("delta", 'properties = { a = "b" }', "is unknown to Delta"),
    ],
)
def test_mistakes_in_shapes(kind: str, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_spec(f'{HEAD}[[sinks]]\ntype = "{kind}"\npath = "x"\n{text}\n', folder=Path("/tmp"))


def test_only_what_differs_is_changed() -> None:
    need_module("pyspark")
    from ixion.pipelines.sinks.shape import Shape, plan_shape

    sink = TableSink(
        format="iceberg",
        path="/x",
        partition_by=("days(at)", "bucket(16, id)"),
        sort_by=("id", "at desc"),
        properties={"a": "it's"},
    )
    there = Shape(
        partitions=("days(At)", "bucket(8, id)", "country"), order=("id ASC NULLS FIRST",), properties={"b": "c"}
    )
    assert [change.sql for change in plan_shape(sink, there)] == [
        "DROP PARTITION FIELD bucket(8, id)",
        "DROP PARTITION FIELD country",
        "ADD PARTITION FIELD bucket(16, id)",
        "WRITE ORDERED BY id, at desc",
        "SET TBLPROPERTIES ('a' = 'it\\'s')",
    ]
    same = Shape(
        partitions=("days(at)", "bucket(16, id)"),
        order=("id ASC NULLS FIRST", "at DESC NULLS LAST"),
        properties={"a": "it's"},
    )
    assert list(plan_shape(sink, same)) == []
    silent = replace(sink, partition_by=(), sort_by=(), properties={})
    assert list(plan_shape(silent, there)) == []  # of what the file does not say, nothing is changed


def test_partitions_are_found_in_both_ways_that_spark_tells_them() -> None:
    need_module("pyspark")
    from ixion.pipelines.sinks.shape import partitions_in

    columns = [("n", "int"), ("s", "string")]
    plain = [
        *columns,
        ("# Partition Information", ""),
        ("# col_name", "data_type"),
        ("s", "string"),
        ("", ""),
        ("x", "y"),
    ]
    assert list(partitions_in(plain)) == ["s"]
    mixed = [*columns, ("", ""), ("# Partitioning", ""), ("Part 0", "bucket(4, n)"), ("Part 1", "s")]
    assert list(partitions_in(mixed)) == ["bucket(4, n)", "s"]
    assert list(partitions_in(columns)) == []
