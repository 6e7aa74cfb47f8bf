"""One run of a pipeline: it finishes an earlier run, then runs the stream and the upkeep, and keeps a record.

The record is kept in the checkpoint (see `run_records`) and, if the file has [lineage], sent as OpenLineage events.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Final

from pyspark.sql import SparkSession

from ixion.pipelines.batch.metrics import BatchFigures, RunFigures
from ixion.pipelines.batch.plan import Stream
from ixion.pipelines.batch.rules_begun_with import begun_with, finishing
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.checkpoint.run_records import RunLog, utc_now
from ixion.pipelines.formats.schema import refuse_registry_records
from ixion.pipelines.run.agreement import compare
from ixion.pipelines.run.backfill import Backfill
from ixion.pipelines.run.lineage import RunLineage
from ixion.pipelines.run.lineage_sending import EventSender
from ixion.pipelines.run.moved_keys import refuse_moved_keys
from ixion.pipelines.run.progress import Progress
from ixion.pipelines.run.queries import Queries
from ixion.pipelines.run.replay import Replay
from ixion.pipelines.run.torn import mend_torn
from ixion.pipelines.source.lost_records import Topic
from ixion.pipelines.source.topics import find_topics, need_sink_brokers
from ixion.pipelines.spark.explain import explain
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink
from ixion.pipelines.upkeep.join_parquet import finish_compaction
from ixion.pipelines.upkeep.results import Upkept
from ixion.pipelines.upkeep.schedule import Keeper

Build = Callable[[PipelineSpec], Stream]


class Run:
    def __init__(
        self,
        spec: PipelineSpec,
        spark: SparkSession,
        checkpoint: Checkpoint,
        build: Build,
        *,
        again: bool = False,
        report: Callable[[BatchFigures], None],
        started: Callable[[Progress], None],
        stage: Callable[[str], None],
        warn: Callable[[str], None],
        upkept: Callable[[Upkept], None],
    ) -> None:
        """BUILD gives the plan of a pipeline. AGAIN: go on although a table and the checkpoint disagree. The other
        functions are called with events."""
        self._spec: Final = spec
        self._spark: Final = spark
        self._checkpoint: Final = checkpoint
        self._build: Final = build
        self._again: Final = again
        self._report: Final = report
        self._started: Final = started
        self._stage: Final = stage
        self._warn: Final = warn
        self._upkept: Final = upkept
        self._lineage: RunLineage | None = None
        self._gate: Final = threading.Lock()  # held while a batch is written (see `upkeep`)
        self._id: Final = str(uuid.uuid4())
        self._log: Final = RunLog(self._id, [checkpoint.remember_run], lambda error: str(explain(error)))

    def go(self, every_ms: int | None) -> RunFigures:
        """EVERY_MS is the time between two batches when following; None drains the topics and ends."""
        self._checkpoint.claim(self._spec)
        mend_torn(self._spec, self._spark, self._checkpoint, self._warn)
        with ExitStack() as stack:
            if self._spec.lineage is not None:
                sender = stack.enter_context(EventSender(self._spec.lineage, self._warn))
                self._lineage = self._events(sender)
                self._log.keepers.append(self._lineage.keep)
            stack.enter_context(self._log)
            return self._go(every_ms)

    def _go(self, every_ms: int | None) -> RunFigures:
        spec, checkpoint = self._spec, self._checkpoint
        checkpoint.forget_unregistered()
        self._stage("asking the broker for its topics")
        topics = find_topics(self._spark, spec.source, checkpoint, create=True)
        if self._lineage is not None:
            self._lineage.topics = tuple(topics)
        need_sink_brokers(self._spark, spec.sinks)
        partitions = {name: len(topic.end) for name, topic in topics.items()}
        refuse_moved_keys(spec, checkpoint, partitions)
        checkpoint.remember_partitions(partitions)
        checkpoint.remember_topics({name: topic.id for name, topic in topics.items()})
        tables = [sink for sink in spec.sinks if isinstance(sink, TableSink)]
        for sink in (*tables, spec.quarantine):
            if sink.format == "parquet":
                finish_compaction(sink, spec.name, self._spark)
        refuse_registry_records(self._spark, spec, topics, checkpoint)
        if checkpoint.used:
            Replay(spec, self._spark, checkpoint, self._build).finish()
            Backfill(spec, self._spark, checkpoint, self._build).finish(self._take)
            compare(spec, self._spark, checkpoint, again=self._again, warn=self._warn)
        done = self._finish_begun(topics)
        if done.stopped:
            return done.figures
        checkpoint.remember_rules(spec.rules)
        self._stage("making the plan")
        queries = self._new_queries(spec, every_ms, figures=done.figures)
        keeper = Keeper(tables, spec.name, self._spark, checkpoint, done=self._upkept, warn=self._warn)
        if every_ms is None:
            queries.go(topics, lambda: self._plan(spec))
        else:
            with keeper.beside(self._gate, lambda: queries.given_up):
                queries.go(topics, lambda: self._plan(spec))
        self._log.given_up = queries.given_up
        if not queries.given_up:
            self._stage("doing the upkeep of the tables")
            keeper.look()
        return queries.figures

    def _finish_begun(self, topics: Mapping[str, Topic]) -> Queries:
        """Finish a batch that is in some table and began with other rules than the present file's."""
        number, kept = self._checkpoint.unfinished, self._checkpoint.rules()
        begun = self._spec
        if number is not None:
            batch = self._new_queries(begun, None).identify(number)
            begun = begun_with(begun, kept, batch, self._spark)
        queries = self._new_queries(begun, None, last=number)
        if number is not None and begun is not self._spec:
            with finishing(number):
                queries.go(topics, lambda: self._plan(begun))
        return queries

    def _new_queries(
        self, spec: PipelineSpec, every_ms: int | None, *, last: int | None = None, figures: RunFigures | None = None
    ) -> Queries:
        return Queries(
            spec,
            self._spark,
            self._checkpoint,
            every_ms=every_ms,
            report=self._take,
            started=self._started,
            last=last,
            figures=figures,
            run=self._id,
            gate=self._gate,
        )

    def _plan(self, spec: PipelineSpec) -> Stream:
        stream = self._build(spec)
        if self._lineage is not None:
            self._lineage.columns = [(field.name, field.dataType.simpleString()) for field in stream.result.schema]
        return stream

    def _take(self, batch: BatchFigures) -> None:
        self._log.add(batch)
        if self._lineage is not None:
            self._lineage.go_on(self._log.record)
        self._report(batch)

    def _events(self, sender: EventSender) -> RunLineage:
        assert self._spec.lineage is not None
        names = {sink.table.partition(".")[0] for sink in self._spec.sinks if isinstance(sink, TableSink)}
        return RunLineage(
            self._spec,
            sender.send,
            namespace=self._spec.lineage.namespace,
            spark=self._spark.version,
            catalogs={name: place for name in names if (place := self._place(name))},
            now=utc_now,
        )

    def _place(self, catalog: str) -> str | None:
        """The address of one of Spark's catalogs."""
        of = f"spark.sql.catalog.{catalog}"
        uri: str | None = self._spark.conf.get(f"{of}.uri", None)
        return uri or self._spark.conf.get(f"{of}.warehouse", None)
