"""From the bytes of a record to columns.

    parsed = read_topic(spark, "orders").transform(parse, "json", "order_id STRING, amount DOUBLE")

`parse` loses nothing: a record that cannot be read keeps its row, with nulls, the reason in `_reason` and the record as
it came in `_record`. `accepted` and `quarantined` then part the two. A record without a value (a tombstone) is not a
bad one; it becomes a row of nulls unless told otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.columns import EXTRA, HIDDEN, REASON, RECORD, RECORD_TYPES
from ixion.pipelines.drift import csv_reason, json_reason, unreadable_reason
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spec.format import DriftSpec, FormatSpec
from ixion.pipelines.words import first_line, innermost, plain

HEADER: Final = "header"  # the reason of a line that names the columns; it is dropped
_DATA: Final = "_data"
_BAD: Final = "_bad_text"  # where Spark puts a text that it could not read


def parse(
    frame: DataFrame,
    format: str = "json",  # noqa: A002 - it is called so in Spark and in the pipeline file
    schema: str | None = None,
    *,
    include: Sequence[str] = (),
    tombstones: str = "keep",
    drift: DriftSpec | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """FRAME is from `read_topic`; SCHEMA is DDL (for avro, its JSON); INCLUDE names columns of the record to keep."""
    spec = FormatSpec(
        type=format, schema=schema, tombstones=tombstones, drift=drift or DriftSpec(), options=options or {}
    )
    return parse_records(frame, spec, include)


def parse_records(frame: DataFrame, spec: FormatSpec, include: Sequence[str]) -> DataFrame:
    with_data, fields, reason = _FORMATS[spec.type](frame, spec)
    tombstone = F.col("value").isNull()
    if spec.tombstones == "keep":
        reason = F.when(~tombstone, reason)
    else:
        reason = F.when(tombstone, F.lit("tombstone")).otherwise(reason)
    reason = reason.cast("string")
    record = F.struct(*(_record_field(frame, name) for name in RECORD_TYPES))
    if spec.tombstones == "drop":
        record = F.when(~tombstone, record)
    if spec.has_header:
        record = F.when(F.coalesce(reason != HEADER, F.lit(True)), record)
    return with_data.select(
        *fields, *(meta_column(name) for name in include), reason.alias(REASON), record.alias(RECORD)
    )


def accepted(frame: DataFrame) -> DataFrame:
    """The rows that nothing speaks against, without the columns that are ours."""
    return frame.where(F.col(REASON).isNull()).drop(*HIDDEN)


def quarantined(frame: DataFrame) -> DataFrame:
    """The rows that are not wanted, as the quarantine table has them: the record as it came, and the reason."""
    bad = frame.where(F.col(REASON).isNotNull() & F.col(RECORD).isNotNull())
    return bad.select(f"{RECORD}.*", F.col(REASON).alias("reason"))


def meta_column(name: str) -> Column:
    """A column of the record beside its fields, under the name kafka_NAME."""
    if name == "key":
        return F.col("key").cast("string").alias("kafka_key")
    return F.col("key" if name == "key_bytes" else name).alias(f"kafka_{name}")


def record_schema(spec: FormatSpec) -> T.StructType:
    """The fields of a record by its DDL."""
    assert spec.schema is not None, "the schema is inferred before records are parsed"
    try:
        schema = T.StructType.fromDDL(spec.schema)
    except PySparkException as error:
        hint = "write names and types: order_id STRING, amount DOUBLE, at TIMESTAMP"
        raise PipelineError(f"format.schema: {plain(first_line(str(error)))}", hint=hint) from error
    assert isinstance(schema, T.StructType)
    for name in schema.names:
        if name in (*HIDDEN, _BAD):
            raise PipelineError(f"format.schema: a field cannot be called {name}, which is a name of pipelines' own")
    return schema


Parsed = tuple["DataFrame", list["Column"], "Column"]  # frame with the data, its fields, the reason


def _json(frame: DataFrame, spec: FormatSpec) -> Parsed:
    schema = record_schema(spec)
    text = F.col("value").cast("string")
    data = F.from_json(text, _with_bad_text(schema), {**_permissive(), **spec.options})
    fields = [F.col(f"{_DATA}.`{field.name}`").alias(field.name) for field in schema.fields]
    if spec.drift.new == "keep":
        known = F.array(*(F.lit(field.name) for field in schema.fields))
        everything = F.from_json(text, "map<string,string>")
        extra = F.map_filter(everything, lambda name, _: ~F.array_contains(known, name))
        fields.append(F.when(F.size(extra) > 0, F.to_json(extra)).alias(EXTRA))
    return frame.withColumn(_DATA, data), fields, json_reason(schema, text, F.col(_DATA), _BAD, spec.drift)


def _csv(frame: DataFrame, spec: FormatSpec) -> Parsed:
    schema = record_schema(spec)
    ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)
    text = csv_line(F.col("value"))
    data = F.from_csv(text, f"{ddl}, {_BAD} STRING", {**_permissive(), **spec.options})
    fields = [F.col(f"{_DATA}.`{field.name}`").alias(field.name) for field in schema.fields]
    reason = csv_reason(text, F.col(f"{_DATA}.{_BAD}"), spec.drift)
    if spec.has_header:
        names = spec.separator.join(field.name for field in schema.fields)
        reason = F.when(F.translate(text, spec.options.get("quote", '"'), "") == names, F.lit(HEADER)).otherwise(reason)
    return frame.withColumn(_DATA, data), fields, reason


def csv_line(value: Column) -> Column:
    """Many senders leave the end of the line on; inside of quotes it belongs to the text."""
    return F.rtrim(value.cast("string"), F.lit("\r\n"))


def _avro(frame: DataFrame, spec: FormatSpec) -> Parsed:
    from pyspark.sql.avro.functions import from_avro

    assert spec.schema is not None
    data = from_avro(F.col("value"), spec.schema, {"mode": "PERMISSIVE", **spec.options})
    try:
        with_data = frame.withColumn(_DATA, data)
        names = with_data.select(f"{_DATA}.*").columns
    except (PySparkException, Py4JJavaError) as error:
        raise PipelineError(f"format.schema is no Avro schema that can be used: {innermost([str(error)])}") from error
    fields = [F.col(f"{_DATA}.`{name}`").alias(name) for name in names]
    # Spark's reader gives a record of nulls where it can read nothing; where a record may be all nulls, its bytes tell.
    unread = F.lit(True)
    for name in names:
        unread = unread & F.col(f"{_DATA}.`{name}`").isNull()
    nulls = all_nulls(spec.schema)
    if nulls is not None:
        unread = unread & (F.col("value") != F.lit(nulls))
    return with_data, fields, unreadable_reason(unread, "not a record of the Avro schema", spec.drift)


def all_nulls(schema: str) -> bytes | None:
    """How Avro writes a record of SCHEMA whose fields are all null; None if there can be none.

    A field that may be null is a union; before its value stands the number of its branch, twice as large.
    """
    encoded = b""
    for field in json.loads(schema).get("fields", ()):
        kind = field["type"]
        if isinstance(kind, list) and "null" in kind:
            encoded += bytes([2 * kind.index("null")])
        elif kind != "null":
            return None
    return encoded


def _text(frame: DataFrame, spec: FormatSpec) -> Parsed:  # noqa: ARG001 - all formats are called alike
    return frame, [F.col("value").cast("string").alias("value")], F.lit(None)


def _bytes(frame: DataFrame, spec: FormatSpec) -> Parsed:  # noqa: ARG001
    return frame, [F.col("value")], F.lit(None)


_FORMATS: Final = {"json": _json, "csv": _csv, "avro": _avro, "text": _text, "bytes": _bytes}


def _permissive() -> dict[str, str]:
    return {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}


def _with_bad_text(schema: T.StructType) -> T.StructType:
    return T.StructType([*schema.fields, T.StructField(_BAD, T.StringType())])


def _record_field(frame: DataFrame, name: str) -> Column:
    if name == "headers" and name not in frame.columns:
        return F.lit(None).cast(RECORD_TYPES[name]).alias(name)
    return F.col(name)
