"""A batch outside the stream: records from the quarantine (`replay`), or older records (`backfill`).

It is handled like every other batch: judged, through the steps, to all sinks, bad records into quarantine. Its name is
decided before it is written, and the caller notes it in the checkpoint. So each table recognises a repeated batch, as
with batches of the stream, and no row is written twice.

Steps with memory work only in a stream: their memory is Spark's own state, which no other batch may touch.

The records of such a batch are older than those that the stream has read since. A table that only adds rows does not
mind, and a merge ignores a change that is older than its row. But where deletes remove rows, nothing tells that a row
was deleted since: an older change would bring it back. So this is refused, unless the caller accepts it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.batch.new_fields import add_new_fields
from ixion.pipelines.batch.plan import Stream
from ixion.pipelines.batch.rules_begun_with import settle_rules
from ixion.pipelines.batch.stable_rows import StableRows
from ixion.pipelines.batch.steps import apply_steps
from ixion.pipelines.batch.write import BatchWriter
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.registry_records import learn
from ixion.pipelines.sinks.base import Batch, Writer
from ixion.pipelines.sinks.make import make_writer
from ixion.pipelines.sinks.upsert import can_delete
from ixion.pipelines.spark.explain import has_grown, met_id
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink


def refuse_memory(stream: Stream, what: str) -> None:
    if stream.stateful:
        hint = "send the records to the topic again; the stream then reads them"
        raise PipelineError(f"a pipeline whose steps have memory has no {what}", hint=hint)


def refuse_removed(spec: PipelineSpec, stream: Stream, what: str) -> None:
    """Raises if a row that was deleted since could come back."""
    for sink in spec.sinks:
        upsert = sink.upsert if isinstance(sink, TableSink) else None
        if upsert is not None and upsert.deletes == "remove" and can_delete(stream.result.columns, upsert):
            message = (
                f"{sink.label} does not keep deleted rows, so a {what} could bring back rows that were deleted since"
            )
            hint = (
                "to merge all changes in their order: move the checkpoint away, start at the earliest record and run "
                'with --again. Tables with deletes = "mark" know older changes. --even-deleted writes the rows anyway'
            )
            raise PipelineError(message, hint=hint)


def write_extra(
    spec: PipelineSpec,
    spark: SparkSession,
    checkpoint: Checkpoint,
    build: Callable[[PipelineSpec], Stream],
    records: DataFrame,
    *,
    batch: Batch,
    work: str,
    quarantine: Writer | None = None,
) -> BatchFigures:
    """Write RECORDS, which have the columns of a topic, as BATCH; WORK is a folder for temporary rows. BUILD is called
    again if the schema has grown, or an unknown schema id was met. QUARANTINE, if not that of the file."""
    spec = settle_rules(spec, work, batch, spark)
    while True:
        writer = _writer(spec, spark, build(spec), batch, work, quarantine)
        try:
            writer(records, batch.number)
        except Exception as error:
            if has_grown(error) and add_new_fields(spark, spec, checkpoint, records):
                continue
            if (met := met_id(error)) is not None and spec.format.registry is not None:
                learn(spec, checkpoint, met)
                continue
            raise
        return writer.figures.pop(batch.number)


def _writer(
    spec: PipelineSpec, spark: SparkSession, stream: Stream, batch: Batch, work: str, quarantine: Writer | None
) -> BatchWriter:
    def steps(frame: DataFrame) -> DataFrame:
        return apply_steps(frame, spec.steps, spec.tables, spec.folder)

    refuse_memory(stream, "batch beside the stream")
    # The clock differs between two passes, so rows that depend on it are kept.
    changing = stream.records_may_change or stream.judge is None
    return BatchWriter(
        identify=lambda _: batch,
        writers=[make_writer(sink, spark) for sink in spec.sinks],
        quarantine=quarantine or make_writer(spec.quarantine, spark),
        steps=steps if spec.steps else None,
        expectations=spec.expectations,
        stream=replace(stream, judge=stream.judging, records_may_change=changing),
        kept=StableRows(work, spark),
    )
