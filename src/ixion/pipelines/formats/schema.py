"""The schema of records: given, or inferred once from some of them, and then kept."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats import avro
from ixion.pipelines.formats.added_columns import RESERVED
from ixion.pipelines.formats.nested_fields import ddl, with_field
from ixion.pipelines.formats.parse import record_schema
from ixion.pipelines.source.lost_records import Topic
from ixion.pipelines.source.read import read_source
from ixion.pipelines.spec.format import FormatSpec
from ixion.pipelines.spec.pipeline import PipelineSpec
from ixion.pipelines.spec.source import SourceSpec, Start

SAMPLE: Final = 1000  # records from which a schema is inferred
RARE: Final = 0.1  # a type with a smaller share of a field's values counts as a mistake


def settle_schema(spark: SparkSession, spec: PipelineSpec, checkpoint: Checkpoint, *, pin: bool) -> str | None:
    """The schema to parse with; None for formats that have none. PIN keeps an inferred one for all later runs."""
    schema = spec.format.schema
    if spec.format.inferred:
        schema = checkpoint.schema()
        if schema is None:
            schema = infer_schema(spark, spec)
            if pin:
                checkpoint.pin_schema(schema)
    if schema is None or spec.format.drift.new != "add":
        return schema
    added = checkpoint.added_fields()
    if not added:
        return schema
    whole: T.DataType = record_schema(replace(spec.format, schema=schema))
    for path, kind in added.items():  # a field that the file names keeps its type there
        whole = with_field(whole, path, T.DataType.fromDDL(kind))
    return _columns(whole)


def infer_schema(spark: SparkSession, spec: PipelineSpec) -> str:
    """As DDL, from the first records of the topics."""
    texts = [value.decode(errors="replace") for value in _first_values(spark, spec.source, SAMPLE)]
    found = _of_csv(spark, spec, texts) if spec.format.type == "csv" else infer_json(spark, texts)
    if found is None:
        hint = 'send some records first, or give the schema: [format] schema = "order_id STRING, amount DOUBLE"'
        raise PipelineError(f"there is no {spec.format.type} record yet to infer a schema from", hint=hint, retry=True)
    return _columns(found)


def _columns(schema: T.DataType) -> str:
    assert isinstance(schema, T.StructType)
    return ", ".join(f"`{field.name}` {ddl(field.dataType)}" for field in schema.fields)


def refuse_registry_records(
    spark: SparkSession, spec: PipelineSpec, topics: Mapping[str, Topic], checkpoint: Checkpoint
) -> None:
    """Fails before the first run if the records of Avro have the header of a schema registry."""
    there = tuple(name for name, topic in topics.items() if any(topic.end[it] > topic.first[it] for it in topic.end))
    if spec.format.type == "avro" and spec.format.registry is None and there and not checkpoint.used:
        source = replace(spec.source, topics=there, pattern=None)
        avro.refuse_registry(_first_values(spark, source, avro.SAMPLE))


def _first_values(spark: SparkSession, source: SourceSpec, count: int) -> list[bytes]:
    """Values of the oldest records, without tombstones, wherever the first run starts."""
    records = read_source(spark, replace(source, start=Start()), streaming=False, headers=False)
    rows = records.where(F.col("value").isNotNull()).limit(count).select("value").collect()
    return [bytes(row[0]) for row in rows]


def infer_json(spark: SparkSession, texts: list[str]) -> T.StructType | None:
    """Infer all objects at once, as the elements of one array, so that their types are merged."""
    objects = typical(texts, _object)
    if not objects:
        return None
    ddl = spark.range(1).select(F.schema_of_json(F.lit(f"[{','.join(objects)}]"))).collect()[0][0]
    whole = T.StructType.fromDDL(f"all {ddl}")
    assert isinstance(whole, T.StructType)
    array = whole["all"].dataType
    assert isinstance(array, T.ArrayType)
    assert isinstance(array.elementType, T.StructType)
    fitting = _fitting(array.elementType, _key_counts(objects))
    fields = fitting.fields if isinstance(fitting, T.StructType) else []
    usable = [field for field in fields if field.name not in RESERVED]
    return T.StructType(usable) if usable else None


def _fitting(kind: T.DataType, counts: Mapping[str, int]) -> T.DataType:
    """KIND without fields that cannot be columns: names with a backtick and, of names that differ only in case, all but
    the most frequent by COUNTS. Later such fields are new ones (see `drift`)."""
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_fitting(kind.elementType, counts))
    if not isinstance(kind, T.StructType):
        return kind
    fields = [field for field in kind.fields if "`" not in field.name]
    usual = {field.name.lower(): field.name for field in sorted(fields, key=lambda field: counts.get(field.name, 0))}
    fitting = [
        T.StructField(field.name, _fitting(field.dataType, counts))
        for field in fields
        if usual[field.name.lower()] == field.name
    ]
    return T.StructType(fitting) if fitting else T.StringType()


def _key_counts(objects: Iterable[str]) -> Counter[str]:
    """How often each key occurs, at any depth."""
    counts: Counter[str] = Counter()
    left = [json.loads(text) for text in objects]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            counts.update(value.keys())
            left += value.values()
        elif isinstance(value, list):
            left += value
    return counts


def _of_csv(spark: SparkSession, spec: PipelineSpec, lines: list[str]) -> T.StructType | None:
    """With a header, the first line only gives the names. Lines with an unusual number of fields are ignored."""
    lines = [line.rstrip("\r\n") for line in lines]
    header = lines[:1] if spec.format.has_header else []
    examples = {line: fields for line in lines if line not in header and (fields := _fields(line, spec.format))}
    if not examples:
        return None
    ((usual, _),) = Counter(len(fields) for fields in examples.values()).most_common(1)
    sound = typical([line for line, fields in examples.items() if len(fields) == usual], examples.get)
    # `csv` accepts this, although its type hints do not.
    rows: Any = spark.sparkContext.parallelize([*header, *sound], 1)
    return spark.read.options(**{"inferSchema": "true", **spec.format.options}).csv(rows).schema


def _fields(line: str, spec: FormatSpec) -> dict[str, object]:
    """By their numbers; none if the line cannot be read."""
    text = io.StringIO(line, newline="")
    try:
        (row,) = csv.reader(text, delimiter=spec.separator, quotechar=spec.options.get("quote", '"'), strict=True)
    except (csv.Error, TypeError, ValueError):  # also more than one line, and separators of several characters
        return {}
    return {str(number): _typed(field) for number, field in enumerate(row)}


def typical(texts: list[str], read: Callable[[str], dict[str, object] | None]) -> list[str]:
    """TEXTS without the odd ones, whose wrong types would turn a column of numbers into text.

    READ gives the fields of a text, None if it cannot be read. A type is odd if few values of its field have it.
    """
    found = {text: value for text in texts if (value := read(text)) is not None}
    kinds: dict[str, Counter[str]] = {}
    for value in found.values():
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
        text for text, value in found.items() if not any((name, _kind(item)) in rare for name, item in value.items())
    ]


def _object(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # the latter for thousands of nested brackets
        return None
    return value if isinstance(value, dict) else None


def _typed(text: str) -> object:
    """None for an empty field, a number if it is one, else the text."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _kind(value: object) -> str:
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
