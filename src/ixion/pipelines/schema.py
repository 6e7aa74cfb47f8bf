"""The schema of records: given, or found once by looking at some of them, and then kept."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source import read_source
from ixion.pipelines.spec.pipeline import PipelineSpec

SAMPLE: Final = 1000  # records that are looked at
RARE: Final = 0.1  # a type that fewer of the values of a field have is taken for a mistake


def settle_schema(spark: SparkSession, spec: PipelineSpec, checkpoint: Checkpoint, *, pin: bool) -> str | None:
    """The schema to parse with; None for formats that have none. PIN keeps an inferred one for all later runs."""
    if not spec.format.inferred:
        return spec.format.schema
    schema = checkpoint.schema()
    if schema is None:
        schema = infer_schema(spark, spec)
        if pin:
            checkpoint.pin_schema(schema)
    return schema


def infer_schema(spark: SparkSession, spec: PipelineSpec) -> str:
    """As DDL, from the first records of the topics."""
    records = read_source(spark, spec.source, streaming=False, headers=False)
    rows = records.where(F.col("value").isNotNull()).limit(SAMPLE).select(F.col("value").cast("string")).collect()
    texts = [row[0] for row in rows]
    found = _of_csv(spark, spec, texts) if spec.format.type == "csv" else _of_json(spark, texts)
    if found is None:
        hint = 'send some records first, or give the schema: [format] schema = "order_id STRING, amount DOUBLE"'
        raise PipelineError(f"there is no {spec.format.type} record yet to infer a schema from", hint=hint, retry=True)
    return ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in found.fields)


def _of_json(spark: SparkSession, texts: list[str]) -> T.StructType | None:
    """All objects at once as the elements of one array, so that their types are merged."""
    objects = typical(texts)
    if not objects:
        return None
    ddl = spark.range(1).select(F.schema_of_json(F.lit(f"[{','.join(objects)}]"))).collect()[0][0]
    whole = T.StructType.fromDDL(f"all {ddl}")
    assert isinstance(whole, T.StructType)
    array = whole["all"].dataType
    assert isinstance(array, T.ArrayType)
    assert isinstance(array.elementType, T.StructType)
    return array.elementType


def _of_csv(spark: SparkSession, spec: PipelineSpec, lines: list[str]) -> T.StructType | None:
    if not lines:
        return None
    options = {"inferSchema": "true", **spec.format.options}
    rows: Any = spark.sparkContext.parallelize(lines, 1)  # which `csv` takes, though its types do not say so
    return spark.read.options(**options).csv(rows).schema


def typical(texts: list[str]) -> list[str]:
    """The JSON objects of TEXTS without the odd ones, whose wrong types would make a column of numbers one of text."""
    objects = {text: value for text in texts if (value := _object(text)) is not None}
    kinds: dict[str, Counter[str]] = {}
    for value in objects.values():
        for name, item in value.items():
            if item is not None:
                kinds.setdefault(name, Counter())[_kind(item)] += 1
    rare = {
        (name, kind)
        for name, counter in kinds.items()
        for kind, count in counter.items()
        if count < RARE * counter.total()
    }
    return [
        text for text, value in objects.items() if not any((name, _kind(item)) in rare for name, item in value.items())
    ]


def _object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _kind(value: object) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
