"""The plan of a pipeline: from the source to the frame of each batch.

Steps without memory (most SQL, Python functions, joins with tables) are applied batch by batch, after the bad records
are removed, so the topic is read once. Steps with memory (windows, de-duplication) exist only in a stream: there the
stream is read twice, once for the steps and once for its bad records, and the two are united. Both are one query with
one checkpoint, so a batch is one unit either way.

Spark computes all columns of a stream's frame for each row, whether the batch needs them or not. So if possible the
stream has only the records, and the batch parses and judges them together with the steps. This is not possible with
memory; nor if records are judged by the clock or anything else that may change: in the stream, the time is that of the
batch, even if the batch is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ixion.pipelines.batch.expectations import counts, expect_result, expecting, met
from ixion.pipelines.batch.stable_rows import may_change
from ixion.pipelines.batch.steps import apply_steps, refuse_twins
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.added_columns import REASON, RECORD
from ixion.pipelines.formats.parse import accepted, record_parser, takes_all
from ixion.pipelines.sinks.upsert import refuse_unmergeable
from ixion.pipelines.source.read import read_source
from ixion.pipelines.spark.java_classes import java_class
from ixion.pipelines.spec.pipeline import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink

METRICS: Final = "ixion"  # the name under which Spark reports the counts of the stream
_CHECKER: Final = "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker"
_STATEFUL: Final = ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark", "Distinct", "GlobalLimit", "Sort")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    frame: DataFrame  # the rows of each batch
    judging: Callable[[DataFrame], DataFrame]  # from records to rows with `_reason` and `_record`
    judge: Callable[[DataFrame], DataFrame] | None  # the same, for the batch to call; None: the stream does it
    result: DataFrame  # the rows for the sinks; used for its schema and its plan
    schema: str | None  # of the records
    stateful: bool
    all_wanted: bool = False  # no record can be bad or dropped, so none is judged
    records_may_change: bool = False  # two passes over the frame might give different rows
    results_may_change: bool = False  # the same for the rows after the steps and their expectations


def build_stream(spark: SparkSession, spec: PipelineSpec, schema: str | None) -> Stream:
    """SCHEMA is that of the records, from the file or inferred."""
    headers = "headers" in spec.source.include
    raw = read_source(spark, spec.source, headers=headers)
    of_records = [one for one in spec.expectations if one.on == "record"]
    whole = any(one.otherwise != "warn" for one in of_records)

    parse_frame = record_parser(raw, replace(spec.format, schema=schema), spec.source.include, whole=whole)
    expect_of = expecting(of_records)

    def judge(records: DataFrame) -> DataFrame:
        parsed = parse_frame(records)
        return expect_of(parsed) if whole else parsed

    judged = judge(raw)
    result = apply_steps(accepted(judged), spec.steps, spec.tables, spec.folder)
    refuse_twins(result)
    for sink in spec.sinks:
        if isinstance(sink, TableSink) and sink.upsert is not None:
            refuse_unmergeable(sink, sink.upsert, result)
    if not result.isStreaming:
        hint = "each step must read `stream`, which is the result of the step before"
        raise PipelineError("the steps do not read the stream, so every batch would have the same rows", hint=hint)
    judged.select(*(met(one) for one in of_records))  # Spark reports an unknown column here, not in the first batch
    of_results = [one for one in spec.expectations if one.on == "result"]
    judged_result = expect_result(result, of_results) if of_results else result
    changing = {
        "records_may_change": may_change(judged, clock=False),
        "results_may_change": may_change(judged_result, clock=True),
    }
    if not has_memory(result):
        in_batch = not may_change(judged, clock=True)
        frame, judging = (raw, judge) if in_batch else (judged, None)
        return Stream(
            frame=frame,
            judging=judge,
            judge=judging,
            result=result,
            schema=schema,
            stateful=False,
            all_wanted=takes_all(spec.format, spec.source.include) and not of_records,
            **changing,
        )
    columns = [column.alias(name) for name, column in counts(of_records, judged).items()]
    counted = accepted(judged.observe(METRICS, *columns))
    rows = apply_steps(counted, spec.steps, spec.tables, spec.folder)
    bad = judged.where(F.col(REASON).isNotNull()).select(REASON, RECORD)
    frame = rows.unionByName(bad, allowMissingColumns=True)
    refuse_unending(frame)
    return Stream(frame=frame, judging=judge, judge=None, result=result, schema=schema, stateful=True, **changing)


def refuse_unending(frame: DataFrame) -> None:
    """Spark refuses here, not later, what a stream cannot do, such as an aggregate without a watermark."""
    plan = frame._jdf.queryExecution().analyzed()
    append = java_class(frame.sparkSession, "org.apache.spark.sql.streaming.OutputMode").Append()
    java_class(frame.sparkSession, _CHECKER).checkForStreaming(plan, append)


def has_memory(frame: DataFrame) -> bool:
    """Whether the plan keeps state between batches, or orders or limits the whole stream."""
    nodes = frame._jdf.queryExecution().analyzed().toString().splitlines()
    return any(node.lstrip(" :+-~").split(" ")[0].rstrip(",") in _STATEFUL for node in nodes)
