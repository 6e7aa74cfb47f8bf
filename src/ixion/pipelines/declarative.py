"""A pipeline file as a project of Spark Declarative Pipelines (Spark 4.1 and newer): `ixion pipeline export --sdp`.

    spark-pipeline.yml             its name, where it keeps its checkpoints, which files belong to it
    transformations/NAME.py        reads the topic by format("ixion"), judges each record, writes into topics
    transformations/NAME.sql       steps as views, tables, and the quarantine

Spark reads the JSON there, not we: it also takes what RFC 8259 does not allow, and ignores fields that are not in the
schema. What has no counterpart, or another meaning, is refused by name: nothing of the file gets lost unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spec.format import DriftSpec, JsonSpec
from ixion.pipelines.spec.pipeline import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink, TopicSink
from ixion.pipelines.spec.steps import SqlStep
from ixion.pipelines.spec.upkeep import UpkeepSpec

META: Final = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "timestamp": "timestamp",
    "key": "CAST(key AS STRING)",
    "key_bytes": "key",
    "headers": "headers",
    "tombstone": "value IS NULL",
}
NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
READ: Final = re.compile(r"\b(from|join)(\s+)stream\b", re.IGNORECASE)
RECORD: Final = ("topic", "partition", "offset", "timestamp", "key", "value")

PYTHON: Final = '''\
"""Reads and judges the records of {name}. Made by `ixion pipeline export --sdp`."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

SOURCE = {source!r}
META = {meta!r}
REASONS = {reasons!r}  # a reason, and the condition under which a record is bad for it

spark = SparkSession.active()


@dp.temporary_view(name={judged!r})
def judged() -> DataFrame:
    records = spark.readStream.format("ixion").options(**SOURCE).load(){wanted}
{parse}
    rows = parsed.selectExpr({fields}, *META, {record!r})
    reasons = [F.when(F.coalesce(F.expr(bad), F.lit(True)), F.lit(reason)) for reason, bad in REASONS]
    return rows.withColumn("_reason", F.concat_ws("; ", *reasons))
'''
JSON: Final = """\
    options = {{"columnNameOfCorruptRecord": "_corrupt"}}
    row = F.from_json(F.col("value").cast("string"), {schema!r}, options)
    parsed = records.withColumn("_row", row)"""
TEXT: Final = """\
    parsed = records.withColumn("_row", F.struct(F.col("value").cast("string").alias("value")))"""
TOPIC: Final = """

dp.create_sink(name={sink!r}, format="ixion", options={options!r})


@dp.append_flow(name={flow!r}, target={sink!r})
def {function}() -> DataFrame:
    return spark.readStream.table({last!r}).selectExpr({key!r}, {value!r})
"""


def project(spec: PipelineSpec, place: Path) -> dict[str, str]:
    """The files of the project by their paths in PLACE. PipelineError names everything that cannot be expressed."""
    faults = list(inexpressible(spec))
    if faults:
        raise PipelineError("a declarative pipeline has nothing for this: " + "; ".join(faults))
    name = spec.name.replace("-", "_")
    return {
        "spark-pipeline.yml": (
            f"name: {name}\nstorage: {(place / 'storage').absolute().as_uri()}\n"
            "libraries:\n  - glob:\n      include: transformations/**\n"
        ),
        f"transformations/{name}.py": python(spec, name),
        f"transformations/{name}.sql": sql(spec, name),
    }


def inexpressible(spec: PipelineSpec) -> Iterator[str]:
    source, form = spec.source, spec.format
    if not re.fullmatch(NAME, spec.name.replace("-", "_")):
        yield f"the name {spec.name}, which no table can have"
    if source.options:
        yield f"[source.options] {', '.join(sorted(source.options))}"
    if source.start.kind == "offsets":
        yield "source.start by offsets"
    if form.type not in ("json", "text") or form.registry is not None or form.unwrap:
        yield f"format {form.type}" + (" with a registry" if form.registry else "")
    elif form.type == "json" and form.schema is None:
        yield "an inferred schema (write format.schema)"
    if form.options or form.json not in (JsonSpec(), JsonSpec(strict=False)):
        yield "settings of the format"
    if form.drift not in (DriftSpec(), DriftSpec(new="add")):
        yield "[format.drift]"
    yield from (
        f"a step that is no SQL ({type(step).__name__})" for step in spec.steps if not isinstance(step, SqlStep)
    )
    yield from (
        f"SQL that does not read `FROM stream`: {step.query}"
        for step in spec.steps
        if isinstance(step, SqlStep) and not READ.search(step.query)
    )
    if spec.tables:
        yield f"[tables] {', '.join(spec.tables)}"
    for one in spec.expectations:
        if one.on != "record" or one.otherwise not in ("drop", "quarantine"):
            yield f"the expectation {one.name!r}: only drop and quarantine of records"
    for sink in spec.sinks:
        if isinstance(sink, TableSink):
            yield from of_table(sink)
        elif not isinstance(sink, TopicSink):
            yield f"the sink {sink.label}"
        elif not sink.exactly_once or sink.options:
            yield f"the sink {sink.label} without exactly_once, or with options"
    if spec.catalogs or spec.lineage:
        yield "[catalogs] and [lineage], which are settings of its Spark"


def of_table(sink: TableSink) -> Iterator[str]:
    if sink.upsert is not None or sink.evolve or sink.sort_by or sink.properties or sink.options:
        yield f"mode, evolve, sort_by, properties or options of {sink.label}"
    if sink.upkeep != UpkeepSpec():
        yield f"upkeep of {sink.label}"
    if not re.fullmatch(NAME, table_name(sink)):
        yield f"a table called {table_name(sink)} ({sink.label})"
    yield from (f"partitions by {name}" for name in sink.partition_by if not re.fullmatch(NAME, name))


def table_name(sink: TableSink) -> str:
    """Tables have names there, and lie in the folder of the warehouse."""
    return sink.table or sink.path.rstrip("/").rpartition("/")[2].replace("-", "_")


def python(spec: PipelineSpec, name: str) -> str:
    form = spec.format
    is_json = form.type == "json"
    reasons = [("not a JSON object of this schema", "_corrupt IS NOT NULL")] if is_json else []
    if form.tombstones == "quarantine":
        reasons.append(("a tombstone", "value IS NULL" if not is_json else "_record.value IS NULL"))
    reasons += [
        (f"expectation not met: {one.name}", f"NOT ({one.check})")
        for one in spec.expectations
        if one.otherwise == "quarantine"
    ]
    text = PYTHON.format(
        name=spec.name,
        source=source_options(spec),
        meta=[f"{META[meta]} AS kafka_{meta}" for meta in spec.source.include],
        reasons=reasons,
        judged=f"{name}_judged",
        wanted='.where("value IS NOT NULL")' if form.tombstones == "drop" else "",
        parse=JSON.format(schema=f"{(form.schema or '').strip()}, _corrupt STRING") if is_json else TEXT,
        fields='"_row.*"',
        record=f"struct({', '.join(RECORD)}) AS _record",
    )
    topics = [sink for sink in spec.sinks if isinstance(sink, TopicSink)]
    for number, sink in enumerate(topics):
        key = f"CAST({sink.key} AS STRING) AS key" if sink.key else "CAST(NULL AS STRING) AS key"
        value = f"CAST({sink.value} AS STRING) AS value" if sink.value else "to_json(struct(*)) AS value"
        text += TOPIC.format(
            sink=f"{name}_topic_{number}",
            options={"kafka.bootstrap.servers": sink.bootstrap, "topic": sink.topic},
            flow=f"{name}_to_topic_{number}",
            function=f"to_topic_{number}",
            last=f"{name}_rows",
            key=key,
            value=value,
        )
    return text


def source_options(spec: PipelineSpec) -> dict[str, str]:
    source = spec.source
    options = {"kafka.bootstrap.servers": source.bootstrap}
    options |= {"subscribePattern": source.pattern} if source.pattern else {"subscribe": ",".join(source.topics)}
    if source.start.kind == "time":
        options |= {"startingTimestamp": str(source.start.time_ms), "startingOffsetsByTimestampStrategy": "latest"}
    else:
        options["startingOffsets"] = source.start.kind
    if source.committed_only:
        options["kafka.isolation.level"] = "read_committed"
    if source.max_records_per_batch:
        options["maxOffsetsPerTrigger"] = str(source.max_records_per_batch)
    if source.min_partitions:
        options["minPartitions"] = str(source.min_partitions)
    if "headers" in source.include:
        options["includeHeaders"] = "true"
    return options


def sql(spec: PipelineSpec, name: str) -> str:
    dropped = [f"coalesce({one.check}, false)" for one in spec.expectations if one.otherwise == "drop"]
    good = " AND ".join(["_reason = ''", *(f"({condition})" for condition in dropped)])
    hidden = "_reason, _record, _corrupt" if spec.format.type == "json" else "_reason, _record"
    where = f" WHERE {good}"
    parts = [view(f"{name}_good", f"* EXCEPT ({hidden})", f"{name}_judged", where)]
    last = f"{name}_good"
    for number, step in enumerate(spec.steps):
        assert isinstance(step, SqlStep)
        query = READ.sub(rf"\1\2STREAM({last})", step.query.strip().rstrip(";"))
        last = f"{name}_step_{number + 1}"
        parts.append(f"CREATE TEMPORARY VIEW {last} AS\n{query};\n")
    parts.append(view(f"{name}_rows", "*", last))
    tables = [sink for sink in spec.sinks if isinstance(sink, TableSink)]
    parts += [table(sink, "*", f"{name}_rows") for sink in tables]
    parts.append(table(spec.quarantine, "_record.*, _reason AS reason", f"{name}_judged", " WHERE _reason <> ''"))
    return "\n".join(parts)


def view(name: str, columns: str, stream: str, where: str = "") -> str:
    return f"CREATE TEMPORARY VIEW {name} AS\nSELECT {columns} FROM STREAM({stream}){where};\n"


def table(sink: TableSink, columns: str, stream: str, where: str = "") -> str:
    by = f" PARTITIONED BY ({', '.join(sink.partition_by)})" if sink.partition_by else ""
    head = f"CREATE STREAMING TABLE {table_name(sink)} USING {sink.format}{by} AS"
    return f"{head}\nSELECT {columns} FROM STREAM({stream}){where};\n"
