"""A batch beside the stream: records from the quarantine (`replay`), or from a range of the past (`backfill`).

It goes the way of every other batch: judged, through the steps, to all sinks, bad records into quarantine. Its name is
decided before it is written, and noted in the checkpoint by the caller. So each table knows it when it comes again, as
it knows the batches of the stream, and no row is written twice.

Steps with memory exist only in a stream: what they remember is in Spark's own state, which no other batch may touch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.batch import BatchWriter
from ixion.pipelines.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.explain import has_grown, met_id
from ixion.pipelines.figures import BatchFigures
from ixion.pipelines.growth import add_new_fields
from ixion.pipelines.kept import KeptRows
from ixion.pipelines.registered import learn
from ixion.pipelines.rules import settle_rules
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.sinks.make import make_writer
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.steps import apply_steps
from ixion.pipelines.stream import Stream


def refuse_memory(stream: Stream, what: str) -> None:
    if stream.stateful:
        hint = "records can be sent to the topic again, and come through the stream"
        raise PipelineError(f"a pipeline whose steps have memory has no {what}", hint=hint)


def write_extra(
    spec: PipelineSpec,
    spark: SparkSession,
    checkpoint: Checkpoint,
    build: Callable[[PipelineSpec], Stream],
    records: DataFrame,
    *,
    query: str,
    number: int,
    work: str,
) -> BatchFigures:
    """Writes RECORDS, which have the columns of a topic, as batch NUMBER of QUERY; WORK is a folder for rows on the
    way. BUILD is asked again if the schema has grown, or another schema id was met."""
    spec = settle_rules(spec, work, Batch(pipeline=spec.name, query=query, number=number), spark)
    while True:
        writer = _writer(spec, spark, build(spec), query, work)
        try:
            writer(records, number)
        except Exception as error:
            if has_grown(error) and add_new_fields(spark, spec, checkpoint, records):
                continue
            if (met := met_id(error)) is not None and spec.format.registry is not None:
                learn(spec, checkpoint, met)
                continue
            raise
        return writer.figures.pop(number)


def _writer(spec: PipelineSpec, spark: SparkSession, stream: Stream, query: str, work: str) -> BatchWriter:
    def steps(frame: DataFrame) -> DataFrame:
        return apply_steps(frame, spec.steps, spec.tables, spec.folder)

    refuse_memory(stream, "batch beside the stream")
    # Judged here, where the time goes on from one pass to the next: such rows are kept.
    changing = stream.records_may_change or stream.judge is None
    return BatchWriter(
        pipeline=spec.name,
        query=lambda: query,
        writers=[make_writer(sink, spark) for sink in spec.sinks],
        quarantine=make_writer(spec.quarantine, spark),
        steps=steps if spec.steps else None,
        expectations=spec.expectations,
        stream=replace(stream, judge=stream.judging, records_may_change=changing),
        kept=KeptRows(work, spark),
    )
