"""The queries of a run, one after the other, until the topics are drained or the caller stops the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.batch.metrics import BatchFigures, RunFigures
from ixion.pipelines.batch.new_fields import add_new_fields
from ixion.pipelines.batch.plan import Stream
from ixion.pipelines.batch.stable_rows import StableRows
from ixion.pipelines.batch.steps import apply_steps
from ixion.pipelines.batch.write import BatchWriter
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.checkpoint.run_records import utc_now
from ixion.pipelines.formats.registry_records import learn
from ixion.pipelines.run.moved_keys import refuse_moved_keys
from ixion.pipelines.run.progress import Progress
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.sinks.make import make_writer
from ixion.pipelines.source.lost_records import Topic
from ixion.pipelines.source.read import offsets_behind
from ixion.pipelines.source.topic_ids import TopicWatch
from ixion.pipelines.source.topics import find_topics
from ixion.pipelines.spark.explain import has_grown, is_loss, met_id
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.durations import spark_interval
from ixion.pipelines.spec.sinks import TableSink


class Queries:
    def __init__(
        self,
        spec: PipelineSpec,
        spark: SparkSession,
        checkpoint: Checkpoint,
        *,
        every_ms: int | None,
        report: Callable[[BatchFigures], None],
        started: Callable[[Progress], None],
        last: int | None = None,
        figures: RunFigures | None = None,
        run: str = "",
        gate: AbstractContextManager[object] | None = None,
    ) -> None:
        """EVERY_MS is the time between two batches when following; None drains the topics and ends. The run ends
        after batch LAST, if that is given. FIGURES are those of batches before, RUN is the id of this run."""
        self._spec: Final = spec
        self._spark: Final = spark
        self._checkpoint: Final = checkpoint
        self._every_ms: Final = every_ms
        self._report: Final = report
        self._started: Final = started
        self._last: Final = last
        self._run: Final = run
        self._gate: Final = gate
        self._kept: Final = StableRows(spec.checkpoint, spark)
        self._added: list[str] = []  # columns that the next batch has first
        self._tables_noted = False
        self.figures = figures or RunFigures()
        self.given_up = False  # a batch may have been left half done
        self.stopped = False  # by the caller

    def go(self, topics: Mapping[str, Topic], build: Callable[[], Stream]) -> None:
        """BUILD gives the stream; it is called again when the schema has grown, an unknown schema id was met, or the
        clock was set back."""
        with TopicWatch(self._spark, self._spec.source, self._checkpoint) as watch:
            while not self._follow(topics, build(), watch):
                pass
        if self._checkpoint.settled:
            self._kept.forget()

    def _follow(self, topics: Mapping[str, Topic], stream: Stream, watch: TopicWatch) -> bool:
        """True if the run is over; otherwise another query continues from the unfinished batch."""
        writer = self._writer(stream, watch)
        starter = stream.frame.writeStream.foreachBatch(writer).option("checkpointLocation", self._spec.checkpoint)
        if self._every_ms is not None and self._last is None:
            starter = starter.trigger(processingTime=spark_interval(self._every_ms))
        else:
            starter = starter.trigger(availableNow=True)
        ends = {name: topic.end for name, topic in topics.items()}
        of_records = [one for one in self._spec.expectations if one.on == "record"]
        progress = Progress(starter.start(), writer, of_records, ends)
        self._started(progress)
        try:
            for batch in progress.follow():
                self._take(batch)
        except Exception as error:
            if has_grown(error):
                self._added = add_new_fields(self._spark, self._spec, self._checkpoint)
                if self._added:
                    return False
            if (number := met_id(error)) is not None and self._spec.format.registry is not None:
                learn(self._spec, self._checkpoint, number)
                return False
            if is_loss(error):  # Spark does not say which records
                find_topics(self._spark, self._spec.source, self._checkpoint)
            raise
        self.given_up, self.stopped = progress.given_up, progress.stopped
        return not progress.set_back

    def _take(self, batch: BatchFigures) -> None:
        batch = self._described(batch)
        self._added = []
        self.figures = self.figures.plus(batch)
        self._checkpoint.remember(batch)
        self._report(batch)

    def _described(self, batch: BatchFigures) -> BatchFigures:
        if batch.new_fields and self._spec.format.drift.new != "add":
            done = _DONE[self._spec.format.drift.new]
            batch = replace(batch, new_fields=dict.fromkeys(batch.new_fields, done))
        if self._added:
            batch = replace(batch, new_fields=dict.fromkeys(self._added, "added"))
        return replace(batch, run=self._run)

    def _writer(self, stream: Stream, watch: TopicWatch) -> BatchWriter:
        spec, checkpoint = self._spec, self._checkpoint

        def steps(frame: DataFrame) -> DataFrame:
            return apply_steps(frame, spec.steps, spec.tables, spec.folder)

        return BatchWriter(
            identify=self.identify,
            writers=[make_writer(sink, self._spark) for sink in spec.sinks],
            quarantine=make_writer(spec.quarantine, self._spark),
            steps=steps if spec.steps else None,
            expectations=spec.expectations,
            stream=stream,
            kept=self._kept,
            guard=lambda number: self._look(watch, number),
            size=lambda number: offsets_behind(checkpoint.offsets(number), checkpoint.position() or {}),
            last=self._last,
            gate=self._gate,
            known=checkpoint.has_figures,
            done=lambda figures: self._keep(figures, counted=not stream.stateful),
        )

    def _look(self, watch: TopicWatch, number: int) -> None:
        watch.look(number)
        refuse_moved_keys(
            self._spec,
            self._checkpoint,
            {topic: len(partitions) for topic, partitions in self._checkpoint.offsets(number).items()},
        )

    def identify(self, number: int) -> Batch:
        spec, checkpoint = self._spec, self._checkpoint
        reached = checkpoint.reached(spec.name, number)
        return Batch(
            pipeline=spec.name,
            query=checkpoint.query,
            number=number,
            reached=reached if reached.offsets else None,
            no_records=reached.offsets == checkpoint.position(),
        )

    def _keep(self, figures: BatchFigures, *, counted: bool) -> None:
        """Store what was counted: killed after the tables have a batch, a run must not lose its figures. `_take` adds
        what Spark reports. If steps have memory, Spark itself counts the records, so COUNTED is false here."""
        if not self._tables_noted:
            self._checkpoint.remember_tables(sink.label for sink in self._spec.sinks if isinstance(sink, TableSink))
            self._tables_noted = True
        if counted:
            ended, offsets = utc_now().isoformat(), self._checkpoint.offsets(figures.batch)
            self._checkpoint.remember(self._described(replace(figures, ended=ended, offsets=offsets)))


_DONE: Final = {"keep": "kept in _extra", "quarantine": "quarantined", "ignore": "left out", "fail": "refused"}
