"""Records in plain Avro: the fields one after the other, without a header."""

from __future__ import annotations

import json
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.drift import NOT_UTF8, unreadable_reason, valid_text
from ixion.pipelines.spark.short_messages import innermost
from ixion.pipelines.spec.format import FormatSpec

REGISTRY: Final = "Avro with the header of a schema registry, and the file has no [format.registry]"
HEADER_BYTES: Final = 5  # of a schema registry: a zero, then the id of the schema
SAMPLE: Final = 20  # records that are checked before a run
_DATA: Final = "_data"


def parse_avro(frame: DataFrame, spec: FormatSpec) -> tuple[list[dict[str, Column]], list[Column], Column, None]:
    """The column with the data, its fields, and the reason why a record is bad."""
    from pyspark.sql.avro.functions import from_avro

    assert spec.schema is not None
    data = from_avro(F.col("value"), spec.schema, {"mode": "PERMISSIVE", **spec.options})
    try:
        with_data = frame.withColumn(_DATA, data)
        names = with_data.select(f"{_DATA}.*").columns
    except (PySparkException, Py4JJavaError) as error:
        raise PipelineError(f"format.schema is not a usable Avro schema: {innermost([str(error)])}") from error
    fields = [F.col(f"{_DATA}.`{name}`").alias(name) for name in names]
    unread = _unread(F.col(_DATA), names, F.col("value"), spec.schema)
    reason = F.when(_has_registry_header(names, unread, spec.schema), F.lit(REGISTRY))
    reason = unreadable_reason(reason, unread, "not a record of the Avro schema", spec.drift)
    valid = valid_text(F.col(_DATA), with_data.schema[_DATA].dataType)
    return [{_DATA: data}], fields, reason.when(~valid, F.lit(NOT_UTF8)), None


def refuse_registry(values: list[bytes]) -> None:
    """Fails if all VALUES, the first records of the topics, have the header of a schema registry.

    A few schemas belong to many records, so there are few ids; the first bytes of plain records vary more.
    """
    framed = [value[1:HEADER_BYTES] for value in values if len(value) > HEADER_BYTES and value[0] == 0]
    if values and len(framed) == len(values) and len(set(framed)) <= max(1, len(values) // 4):
        number = int.from_bytes(framed[0], "big")
        message = f"the records begin with the header of a schema registry (schema id {number})"
        hint = "set [format.registry] url to their registry, or use format bytes for the raw records"
        raise PipelineError(message, hint=hint)


def all_nulls(schema: str) -> bytes | None:
    """How Avro writes a record of SCHEMA whose fields are all null; None if there is no such record.

    A nullable field is a union: before its value stands the number of its branch, doubled.
    """
    encoded = b""
    for field in json.loads(schema).get("fields", ()):
        kind = field["type"]
        if isinstance(kind, list) and "null" in kind:
            encoded += bytes([2 * kind.index("null")])
        elif kind != "null":
            return None
    return encoded


def _unread(data: Column, names: list[str], value: Column, schema: str) -> Column:
    """Whether a record could not be read: Spark then returns all nulls. If the schema allows that, its bytes decide."""
    unread = F.lit(True)
    for name in names:
        unread = unread & data[name].isNull()
    nulls = all_nulls(schema)
    return unread if nulls is None else unread & (value != F.lit(nulls))


def _has_registry_header(names: list[str], unread: Column, schema: str) -> Column:
    """Whether a value is a record of SCHEMA after a zero byte and four bytes for the id of a schema.

    A plain record can begin with a zero too. But only one of the two readings uses all bytes: the record, written
    again, must be as long as the input.
    """
    from pyspark.sql.avro.functions import from_avro, to_avro

    value, rest = F.col("value"), F.expr(f"substring(value, {HEADER_BYTES + 1})")
    behind = from_avro(rest, schema, {"mode": "PERMISSIVE"})
    plain = F.when(unread, False).otherwise(to_avro(F.col(_DATA), schema) == value)
    framed = F.when(_unread(behind, names, rest, schema), False).otherwise(to_avro(behind, schema) == rest)
    header = (F.octet_length(value) > HEADER_BYTES) & F.startswith(value, F.lit(b"\x00"))
    return F.when(header, F.when(plain, False).otherwise(framed)).otherwise(False)
