"""Records with the header of a schema registry. An Avro record is read with the schema that it was written with. A JSON
record names its fields itself, so the registry only gives the columns. For Protobuf see `protobuf`.

The columns are those of the newest version of the subject when the run begins, or of the schema in the file. Records
that were written with another version are read into them by Avro's rules: a field that they lack has its default.

The schemas are part of Spark's plan, so a plan knows a set of ids. A record with an unknown id ends the batch before
anything is written. Then the registry is asked for that id, the answer is noted in the checkpoint, and the same batch
is read again. Records with an id that the registry does not have go to the quarantine.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.avro import HEADER_BYTES, all_nulls
from ixion.pipelines.formats.avro_references import whole_schema
from ixion.pipelines.formats.drift import NOT_UTF8, unreadable_reason, valid_text
from ixion.pipelines.formats.json_schema import columns_of
from ixion.pipelines.formats.protobuf_files import compile_registered
from ixion.pipelines.formats.registry import Registered, Registry, open_registry
from ixion.pipelines.spark.short_messages import innermost
from ixion.pipelines.spec.format import FormatSpec
from ixion.pipelines.spec.pipeline import PipelineSpec

UNKNOWN: Final = "ixion has met a schema id: "  # marks a batch that needs another schema
NO_HEADER: Final = "no header of a schema registry"
_DATA: Final = "_data"


def settle_writers(spec: PipelineSpec, checkpoint: Checkpoint) -> FormatSpec:
    """The format with the schema for the columns, and with all known schemas that records are written with."""
    format_ = spec.format
    assert format_.registry is not None
    subject = format_.registry.subject or (f"{spec.source.topics[0]}-value" if spec.source.topics else None)
    if subject is None:
        raise PipelineError("a pattern names no topic: [format.registry] needs a subject")
    registry = open_registry(format_.registry)
    versions = registry.versions(subject)
    if not versions and format_.schema is None:
        hint = "is it another one? [format.registry] subject names it; TOPIC-value is the usual one"
        raise PipelineError(f"the schema registry has no subject {subject}", hint=hint)
    other = next((one.kind for one in versions if one.kind != format_.type.upper()), None)
    if other is not None:
        raise PipelineError(f"the schemas of subject {subject} are {other}, and the format is {format_.type}")
    if format_.type == "json":
        return replace(format_, schema=format_.schema or columns_of(versions[-1].schema))
    found = {one.id: _as_read(registry, one, format_) for one in versions}
    newest = found[versions[-1].id] if versions else None
    return replace(format_, schema=format_.schema or newest, writers={**checkpoint.registered(), **found})


def _as_read(registry: Registry, one: Registered, format_: FormatSpec) -> str:
    """The schema in the form in which records are read with it."""
    return compile_registered(registry, one) if format_.type == "protobuf" else whole_schema(registry, one)


def unknown_id(text: str) -> int | None:
    """The unknown schema id in an error of Spark; None if it is another error."""
    found = re.search(rf"{UNKNOWN}(\d+)", text)
    return int(found[1]) if found else None


def learn(spec: PipelineSpec, checkpoint: Checkpoint, number: int) -> None:
    """Ask the registry for the schema with id NUMBER, and note the answer."""
    assert spec.format.registry is not None
    registry = open_registry(spec.format.registry)
    found = registry.by_id(number)
    if found is not None and found.kind != spec.format.type.upper():
        found = None  # no record of this format was written with it
    checkpoint.remember_registered({number: None if found is None else _as_read(registry, found, spec.format)})


def has_header(value: Column) -> Column:
    return (F.octet_length(value) >= HEADER_BYTES) & F.startswith(value, F.lit(b"\x00"))


def without_header() -> Column:
    return F.expr(f"substring(value, {HEADER_BYTES + 1})")


def schema_id() -> Column:
    return F.conv(F.hex(F.substring(F.col("value"), F.lit(2), F.lit(4))), 16, 10).cast("long")


def id_reason(reason: Column, number: Column, known: list[int], missing: list[int]) -> Column:
    """REASON, or a fault of the schema id: the registry does not have it, or was not asked yet."""
    words = F.concat(F.lit("not in the schema registry: id "), number.cast("string"))
    asked = F.raise_error(F.concat(F.lit(UNKNOWN), number.cast("string"))).cast("string")
    return reason.when(number.isin(missing), words).when(~number.isin([*known, *missing]), asked)


def parse_registered(frame: DataFrame, spec: FormatSpec) -> tuple[list[dict[str, Column]], list[Column], Column, None]:
    """As `parse_avro` does."""
    assert spec.schema is not None
    number = schema_id()
    rest = without_header()
    header = has_header(F.col("value"))
    known = {key: schema for key, schema in spec.writers.items() if schema is not None}
    try:
        data = _read(number, rest, known, spec)
        with_data = frame.withColumn(_DATA, data)
        names = with_data.select(f"{_DATA}.*").columns
    except (PySparkException, Py4JJavaError) as error:
        message = f"the schemas of the registry cannot be used: {innermost([str(error)])}"
        raise PipelineError(message) from error
    missing = [key for key, schema in spec.writers.items() if schema is None]
    reason = id_reason(F.when(~header, F.lit(NO_HEADER)), number, list(known), missing)
    unread = _unread(F.col(_DATA), names, number, rest, known)
    reason = unreadable_reason(reason, unread, "not a record of the Avro schema", spec.drift)
    valid = valid_text(F.col(_DATA), with_data.schema[_DATA].dataType)
    fields = [F.col(f"{_DATA}.`{name}`").alias(name) for name in names]
    return [{_DATA: data}], fields, reason.when(~valid, F.lit(NOT_UTF8)), None


def _read(number: Column, rest: Column, writers: dict[int, str], spec: FormatSpec) -> Column:
    from pyspark.sql.avro.functions import from_avro

    assert spec.schema is not None
    options = {"mode": "PERMISSIVE", **spec.options, "avroSchema": spec.schema}
    data = F.when(F.lit(False), from_avro(rest, spec.schema, options))  # so that there is one, whatever is known
    for key, schema in writers.items():
        data = data.when(number == key, from_avro(rest, schema, options))
    return data


def _unread(data: Column, names: list[str], number: Column, rest: Column, writers: dict[int, str]) -> Column:
    """Whether a record could not be read: Spark then returns all nulls. If the schema allows that, its bytes decide."""
    unread = F.lit(True)
    for name in names:
        unread = unread & data[name].isNull()
    for key, schema in writers.items():
        nulls = all_nulls(schema)
        if nulls is not None:
            unread = unread & ~((number == key) & (rest == F.lit(nulls)))
    return unread
