"""Reads again what tables have lost: `ixion pipeline backfill --missing`.

A table that was deleted, or restored from a backup, lacks records that the checkpoint has noted as written (see
`agreement`). They are read from the topic and written into this table alone, in their order:

    checkpoint   0 to 80        table 0 to 30        batches 30 to 60, 60 to 80        table 0 to 80

Each batch stores in its own commit what the table has from then on, as batches of the stream do. So nothing has to be
noted for the case that it is killed: called again, it reads what is still missing. Bad records are not put into the
quarantine again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.batch.metrics import BatchFigures, Offsets, RunFigures
from ixion.pipelines.batch.plan import Stream
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.run.agreement import look, missing
from ixion.pipelines.run.backfill import MOST, Backfilled, lost_before_read, read_portions
from ixion.pipelines.run.extra_batch import refuse_memory, write_extra
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.sinks.reached import Reached
from ixion.pipelines.source.offset_ranges import Portion, in_batches
from ixion.pipelines.spark.explain import is_loss
from ixion.pipelines.spark.hadoop_files import Files
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink


class Mend:
    def __init__(
        self, spec: PipelineSpec, spark: SparkSession, checkpoint: Checkpoint, build: Callable[[PipelineSpec], Stream]
    ) -> None:
        """BUILD gives the plan of a pipeline."""
        self._spec: Final = spec
        self._spark: Final = spark
        self._checkpoint: Final = checkpoint
        self._build: Final = build

    def go(self, *, dry: bool = False, report: Callable[[BatchFigures], None] = lambda _: None) -> Backfilled:
        """DRY: only report what is missing."""
        position = self._checkpoint.position()
        if position is None or not self._checkpoint.settled:
            hint = "run the pipeline first: with --again it goes on although a table lacks records"
            raise PipelineError("this pipeline has not run yet, or its last batch is not finished", hint=hint)
        refuse_memory(self._build(self._spec), "backfill")
        found: list[Portion] = []
        figures = RunFigures()
        for sink in self._spec.sinks:
            if not isinstance(sink, TableSink):
                continue
            there, numbers = look(sink, self._spec, self._spark, self._checkpoint)
            if there is None and (numbers or sink.label not in self._checkpoint.tables()):
                continue  # an earlier version wrote it, or it was added to the file later
            # Where a checkpoint began, Spark notes for its own connector only.
            if not (there and there.offsets) and self._checkpoint.begun() is None:
                message = f'the first run had reader = "ixion", so nothing tells where {sink.label} began'
                hint = "move the checkpoint and all tables of the pipeline away and run: that builds them anew"
                raise PipelineError(message, hint=hint)
            portions = missing(position, there, self._checkpoint.begun())
            found += portions
            if portions and not dry:
                figures = self._fill(sink, portions, self._start(position, there), figures, report)
        return Backfilled(portions=tuple(found), figures=figures)

    def _start(self, position: Offsets, there: Reached | None) -> dict[str, dict[str, int]]:
        """What the table has now, for each partition that the checkpoint has."""
        begun, has = self._checkpoint.begun() or {}, there.offsets if there is not None else {}
        return {
            topic: {one: has.get(topic, {}).get(one, begun.get(topic, {}).get(one, 0)) for one in partitions}
            for topic, partitions in position.items()
        }

    def _fill(
        self,
        sink: TableSink,
        portions: list[Portion],
        has: dict[str, dict[str, int]],
        figures: RunFigures,
        report: Callable[[BatchFigures], None],
    ) -> RunFigures:
        spec = replace(self._spec, sinks=(sink,))
        for batch in in_batches(portions, spec.source.max_records_per_batch or MOST):
            for one in batch:
                has[one.topic][str(one.partition)] = one.end
            named = self._batch(has)
            work = f"{self._checkpoint.path}/ixion/mend-{zlib.crc32(str(named).encode()):08x}"
            try:
                done = write_extra(
                    spec,
                    self._spark,
                    self._checkpoint,
                    self._build,
                    read_portions(spec, self._spark, batch),
                    batch=named,
                    work=work,
                    quarantine=_Elsewhere(),
                )
            except Exception as error:
                raise (lost_before_read(batch) if is_loss(error) else error) from error
            Files(self._spark).remove(work)
            figures = figures.plus(done)
            report(done)
        return figures

    def _batch(self, has: Mapping[str, Mapping[str, int]]) -> Batch:
        """Written as the stream's own, so that the table goes on from there."""
        query, ids = self._checkpoint.query, self._checkpoint.topic_ids()
        offsets = {topic: dict(partitions) for topic, partitions in has.items()}
        known = {topic: ids[topic] for topic in offsets if topic in ids}
        reached = Reached(writer=f"{self._spec.name}-{query}", batch=-1, offsets=offsets, ids=known)
        return Batch(pipeline=self._spec.name, query=query, number=0, reached=reached)


class _Elsewhere:
    """The quarantine of a batch whose bad records are in quarantine already."""

    is_table = True

    def has(self, batch: Batch) -> bool:  # noqa: ARG002 - it has all
        return True

    def knows(self, pipeline: str) -> bool:  # noqa: ARG002
        return True

    def write(self, frame: DataFrame, batch: Batch) -> None:
        """Nothing to write."""
