"""From the bytes of a record to columns.

    parsed = read_topic(spark, "orders").transform(parse, "json", "order_id STRING, amount DOUBLE")

`parse` loses nothing: a record that cannot be read keeps its row, with nulls, the reason in `_reason` and the original
record in `_record`. `accepted` and `quarantined` then separate the two. A record without a value (a tombstone) is not
bad; it becomes a row of nulls unless `tombstones` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.added_columns import BAD_TEXT, EXTRA, HIDDEN, NEW, REASON, RECORD, RECORD_TYPES, RESERVED
from ixion.pipelines.formats.avro import parse_avro
from ixion.pipelines.formats.debezium import without_row
from ixion.pipelines.formats.drift import NOT_UTF8, changed_reason, csv_reason, json_reason, new_names
from ixion.pipelines.formats.exact import can_change, changed_names, exact_in, with_texts, without_changed
from ixion.pipelines.formats.json_fast_path import (
    OURS,
    can_be_counted,
    closed,
    closed_keys,
    has_known_keys,
    is_usual,
    keys_of,
    valid_utf8,
)
from ixion.pipelines.formats.nested_fields import inner_names
from ixion.pipelines.formats.protobuf import parse_protobuf
from ixion.pipelines.formats.registry_records import NO_HEADER, has_header, parse_registered, without_header
from ixion.pipelines.spark.java_text import JavaText
from ixion.pipelines.spark.short_messages import first_line, plain
from ixion.pipelines.spec.format import DriftSpec, FormatSpec

HEADER: Final = "header"  # the reason of a line that names the columns; it is dropped
KEY_NOT_UTF8: Final = "the key is not valid UTF-8; source.include has key_bytes for such keys"
_OF_ROW: Final = r"^(payload\.)?(before|after)\."  # in Debezium's envelopes: the fields of the rows
_DATA: Final = "_data"
_TEXT: Final = "_text"
_FITS: Final = "_fits"  # whether the keys of a JSON object are known by counting them (see `json_fast_path`)
_NAMES: Final = "_names"  # the keys of any other JSON object, and ours
_KEYS: Final = "_keys"  # the keys of an unusual JSON object
_INNER: Final = "_inner"  # names of nested fields that are not in the schema
_CHANGED: Final = "_changed"  # the names of fields whose values are not those of the record
_USUAL: Final = "_usual"  # whether only the types of a JSON record can be wrong


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


def parse_records(frame: DataFrame, spec: FormatSpec, include: Sequence[str], *, whole: bool = True) -> DataFrame:
    return record_parser(frame, spec, include, whole=whole)(frame)


def record_parser(
    like: DataFrame, spec: FormatSpec, include: Sequence[str], *, whole: bool = True
) -> Callable[[DataFrame], DataFrame]:
    """A function that parses frames with the columns of LIKE, which may lack `headers`.

    Its expressions are built once, not for every batch: each part of one is a call to the JVM, some thousand for JSON.
    If not WHOLE, `_record` is null for most rows without a reason, so that Spark does not copy it from step to step.
    """
    read = parse_registered if spec.registry and spec.type == "avro" else _FORMATS[spec.type]
    stages, fields, reason, odd = read(like, spec)
    tombstone = F.col("value").isNull()
    if spec.tombstones == "keep":
        reason = F.when(~tombstone, reason)
    else:
        reason = F.when(tombstone, F.lit("tombstone")).otherwise(reason)
    if "key" in include:  # it becomes text, whatever the format of the value
        bad_key = ~F.is_valid_utf8(F.col("key").cast("string"))
        reason = F.coalesce(reason, F.when(bad_key, F.lit(KEY_NOT_UTF8)))
        odd = None if odd is None else odd | bad_key
    reason = reason.cast("string")

    @cache
    def columns(has_headers: bool) -> list[Column]:
        record = F.struct(*(_record_field(name, has_headers) for name in RECORD_TYPES))
        if not whole and odd is not None:
            record = F.when(tombstone | odd, record)
        if spec.tombstones == "drop":
            record = F.when(~tombstone, record)
        if spec.has_header:
            record = F.when(F.coalesce(reason != HEADER, F.lit(True)), record)
        return [*fields, *(meta_column(name) for name in include), reason.alias(REASON), record.alias(RECORD)]

    def parse_frame(frame: DataFrame) -> DataFrame:
        has_headers = "headers" in frame.columns
        for stage in stages:
            frame = frame.withColumns(stage)
        frame = frame.select(*columns(has_headers))
        if whole or odd is not None:
            return frame
        return frame.withColumn(RECORD, F.when(F.col(REASON).isNotNull(), F.col(RECORD)))

    return parse_frame


def takes_all(spec: FormatSpec, include: Sequence[str]) -> bool:
    """Whether `parse` finds nothing wrong with any record."""
    return spec.type == "bytes" and spec.tombstones == "keep" and "key" not in include


def accepted(frame: DataFrame) -> DataFrame:
    """The good rows, without the pipeline's own columns."""
    return frame.where(F.col(REASON).isNull()).drop(*HIDDEN)


def quarantined(frame: DataFrame) -> DataFrame:
    """The bad rows for the quarantine table: the original record, and the reason."""
    bad = frame.where(F.col(REASON).isNotNull() & F.col(RECORD).isNotNull())
    return bad.select(f"{RECORD}.*", F.col(REASON).alias("reason"))


def meta_column(name: str) -> Column:
    """A metadata column of the record, under the name kafka_NAME."""
    if name == "key":
        return F.col("key").cast("string").alias("kafka_key")
    if name == "tombstone":
        return F.col("value").isNull().alias("kafka_tombstone")
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
        if name in RESERVED:
            raise PipelineError(f"format.schema: a field cannot be called {name}, which is a name of pipelines' own")
    return schema


# Groups of columns with the data, added one after the other; the fields; the reason; and a cheap condition that holds
# for all rows with a reason, or None.
Parsed = tuple[list[dict[str, "Column"]], list["Column"], "Column", "Column | None"]


def _json(frame: DataFrame, spec: FormatSpec) -> Parsed:
    schema = record_schema(spec)
    stages: list[dict[str, Column]] = []
    value = F.col("value")
    header = has_header(value)
    text = (F.when(header, without_header()) if spec.registry else value).cast("string")
    if spec.json.key_case == "ignore":
        stages.append({_TEXT: _with_known_keys(schema, text, F.json_object_keys(text))})
        text = F.col(_TEXT)
    exact = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"} if spec.json.strict else {}
    options = {**_permissive(), **exact, **spec.options}
    if can_be_counted(schema, spec):
        data = F.from_json(closed(text), _with_bad_text(schema).add(OURS, T.IntegerType()), options)
        java = JavaText(frame.sparkSession, text)
        fits = has_known_keys(text, java, F.col(_DATA), schema.names, spec)
        looks = {_FITS: fits, _NAMES: F.when(~fits, closed_keys(text))}
    else:
        data = F.from_json(text, _with_bad_text(schema), options)
        looks = {_FITS: F.lit(False), _NAMES: closed_keys(text)}
    usual = is_usual(F.col(_NAMES), schema.names, spec) & valid_utf8(text)
    inner = inner_names(schema, text, _OF_ROW if spec.unwrap else "")
    if inner is not None:
        looks[_INNER], inner = inner, F.col(_INNER)
        usual = usual & (F.size(inner) == 0)
    usual = F.col(_FITS) | F.coalesce(usual, F.lit(False))
    # The keys of usual records are known, so they are not copied from here on.
    stages += [{_DATA: data}, looks, {_USUAL: usual, _KEYS: F.when(~usual, keys_of(F.col(_NAMES), text))}]
    names = F.col(_KEYS)
    raw = F.from_json(text, with_texts(schema), options)
    unrounded = exact_in(text, F.col(_FITS))
    changed = changed_names(schema, F.col(_DATA), raw, infinite=spec.json.strict, is_exact=unrounded)
    if changed is not None:
        stages[-1][_CHANGED], changed = changed, F.col(_CHANGED)
    fields = _fields(schema, changed, spec)
    if spec.drift.new == "keep":
        known = F.array(*(F.lit(field.name) for field in schema.fields))
        everything = F.from_json(text, "map<string,string>")
        holders = (
            F.transform(inner, lambda name: F.regexp_extract(name, r"^[^.\[{]+", 0)) if inner is not None else None
        )
        extra = F.map_filter(everything, lambda name, _: _is_extra(name, known, holders))
        extra = F.when(~F.col(_USUAL) & (F.size(extra) > 0), F.to_json(extra))
        fields.append(extra.alias(EXTRA))
    if not spec.drift.unseen or inner is not None:
        seen = None if spec.drift.unseen else names
        fields.append(F.when(~F.col(_USUAL), new_names(schema, seen, inner)).alias(NEW))
    bad = F.col(_DATA)[BAD_TEXT]
    odd = ~F.col(_USUAL) | F.col(_DATA).isNull() | bad.isNotNull()
    reason = F.when(odd, json_reason(schema, text, F.col(_DATA), BAD_TEXT, F.col(_USUAL), names, spec, inner))
    if changed is not None:
        reason, odd = changed_reason(reason, changed, spec.drift), odd | changed.isNotNull()
    if spec.unwrap:
        rowless = without_row(F.col(_DATA), text, wrapped="payload" in schema.names)
        reason, odd = F.coalesce(reason, rowless), odd | rowless.isNotNull()
    if spec.registry:
        reason, odd = F.when(~header, F.lit(NO_HEADER)).otherwise(reason), ~header | odd
    return stages, fields, reason, odd


def _fields(schema: T.StructType, changed: Column | None, spec: FormatSpec) -> list[Column]:
    """The fields that were read; with `retyped = "null"`, null for those whose values have CHANGED."""
    fields = []
    for field in schema.fields:
        column = F.col(f"{_DATA}.`{field.name}`")
        if changed is not None and spec.drift.retyped == "null" and can_change(field.dataType):
            column = without_changed(column, field.name, changed)
        fields.append(column.alias(field.name))
    return fields


def _is_extra(name: Column, known: Column, holders: Column | None) -> Column:
    """Whether the field NAME goes into `_extra`: it is not in the schema, or it HOLDS a field that is not."""
    new = ~F.array_contains(known, name)
    return new if holders is None else new | F.array_contains(holders, name)


def _with_known_keys(schema: T.StructType, text: Column, names: Column) -> Column:
    """TEXT with the keys as SCHEMA spells them, for records that spell one in another case, also nested."""
    known = F.array(*(F.lit(name) for name in schema.names))
    lower = F.array(*(F.lit(name.lower()) for name in schema.names))
    changed = text
    for name in schema.names:
        changed = F.regexp_replace(changed, rf'"(?i:\Q{name}\E)"(\s*:)', f'"{name}"$1')
    other_case = F.exists(F.array_except(names, known), lambda name: F.array_contains(lower, F.lower(name)))
    return F.when(other_case, changed).otherwise(text)


def _csv(frame: DataFrame, spec: FormatSpec) -> Parsed:  # noqa: ARG001
    schema = record_schema(spec)
    ddl = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema.fields)
    text = csv_line(F.col("value"))
    data = F.from_csv(text, f"{ddl}, {BAD_TEXT} STRING", {**_permissive(), **spec.options})
    texts = ", ".join(f"`{name}` STRING" for name in schema.names)
    raw = F.from_csv(text, texts, {**spec.options})
    changed = changed_names(schema, F.col(_DATA), raw, infinite=False)
    fields = _fields(schema, changed, spec)
    reason = csv_reason(text, F.col(f"{_DATA}.{BAD_TEXT}"), spec.drift)
    if changed is not None:
        reason = changed_reason(reason, changed, spec.drift)
    if spec.has_header:
        names = spec.separator.join(field.name for field in schema.fields)
        reason = F.when(F.translate(text, spec.options.get("quote", '"'), "") == names, F.lit(HEADER)).otherwise(reason)
    return [{_DATA: data}], fields, reason, None


def csv_line(value: Column) -> Column:
    """The line without its end, which many producers leave on; inside of quotes it belongs to the text."""
    return F.rtrim(value.cast("string"), F.lit("\r\n"))


def _text(frame: DataFrame, spec: FormatSpec) -> Parsed:  # noqa: ARG001
    text = F.col("value").cast("string")
    return [], [text.alias("value")], F.when(~valid_utf8(text), F.lit(NOT_UTF8)), None


def _bytes(frame: DataFrame, spec: FormatSpec) -> Parsed:  # noqa: ARG001
    return [], [F.col("value")], F.lit(None), F.lit(False)


_FORMATS: Final = {
    "json": _json,
    "csv": _csv,
    "avro": parse_avro,
    "protobuf": parse_protobuf,
    "text": _text,
    "bytes": _bytes,
}


def _permissive() -> dict[str, str]:
    return {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD_TEXT}


def _with_bad_text(schema: T.StructType) -> T.StructType:
    return T.StructType([*schema.fields, T.StructField(BAD_TEXT, T.StringType())])


def _record_field(name: str, has_headers: bool) -> Column:
    if name == "headers" and not has_headers:
        return F.lit(None).cast(RECORD_TYPES[name]).alias(name)
    return F.col(name)
