"""Fields inside of JSON objects that the schema does not know: found in every shape, and put into the schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id STRING, o STRUCT<p: INT, q: ARRAY<STRUCT<r: INT>>>, m MAP<STRING, STRUCT<x: INT>>"
SCHEMA += ", a ARRAY<ARRAY<STRUCT<b: INT>>>"
NOTHING: list[Any] = [None, [], "text", 5, {}, {"q": {"r": 1}}, {"q": [[1]]}]  # as `o`: nothing new is in it
FOUND: dict[str, list[str]] = {
    '{"id": "1", "o": {"p": 1, "q": [{"r": 1, "s": 2}, null, 5, {"s": 3}]}}': ["o.q[].s"],
    '{"o": {"z": {"y": 1}, "p": 1}, "new": {"deep": 1}}': ["o.z"],  # `new` is for the look at the top
    '{"m": {"k": {"x": 1, "y": 2}, "l": null}}': ["m{}.y"],
    '{"a": [[{"b": 1}], [{"c": 1}]]}': ["a[][].c"],
    '{"o": {"": 1, "a b": 2, "e.f": 3}}': ["o.``", "o.`a b`", "o.`e.f`"],
    '{"o": {"P": 1}}': ["o.P"],
    '{"o": {"p": 1, "p": 2}}': [],
    "bad": [],
    "": [],
    **{json.dumps({"o": value}): [] for value in NOTHING},
}


def test_new_fields_are_found_in_every_shape(spark: SparkSession) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    from ixion.pipelines.formats.nested_fields import inner_names, unfit_inner

    schema = T.StructType.fromDDL(SCHEMA)
    assert isinstance(schema, T.StructType)
    names = inner_names(schema, F.col("text"))
    assert names is not None
    rows: Any = spark.range(1).select(F.explode(F.array(*(F.lit(text) for text in FOUND))).alias("text"))
    looked = rows.select("text", names.alias("names")).select("text", "names", unfit_inner(F.col("names"), schema))
    found = {row[0]: (sorted(row[1]), sorted(row[2])) for row in looked.collect()}
    assert {text: names for text, (names, _) in found.items()} == FOUND
    unfit = sorted(name for _, names in found.values() for name in names)
    assert unfit == ["o.P", "o.``", "o.`a b`", "o.`e.f`"]  # `P` and `p` are one to a table
    assert inner_names(T.StructType(schema.fields[:1]), F.col("text")) is None


def test_a_field_is_put_where_its_name_says() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    from ixion.pipelines.formats.nested_fields import ddl, paths, type_at, with_field

    struct, array, text, number = types.StructType, types.ArrayType, types.StringType(), types.IntegerType()
    point = struct().add("r", number)
    schema = struct().add("o", struct().add("q", array(point))).add("m", types.MapType(text, point))
    assert list(paths(schema)) == ["o", "o.q", "o.q[].r", "m", "m{}.r"]
    for path in ("o.s", "o.q[].s", "m{}.s", "s"):
        grown = with_field(schema, path, text)
        assert sorted(paths(grown)) == sorted([*paths(schema), path])
        assert with_field(grown, path, number) == grown  # what is there keeps its type
    assert with_field(schema, "gone.s", text) == schema
    assert type_at(schema, "o.q[].r") == number
    assert type_at(schema, "o.q[].s") == type_at(schema, "m{}.r") == text  # any JSON goes into a text
    odd = struct().add("a b", struct().add("`", text))
    assert ddl(odd) == "struct<`a b`: struct<````: string>>"
