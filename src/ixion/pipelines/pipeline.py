"""A pipeline: checked, and run as Spark Structured Streaming."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from ixion.pipelines.batch.metrics import BatchFigures, RunFigures
from ixion.pipelines.batch.plan import Stream, build_stream
from ixion.pipelines.batch.steps import need_columns
from ixion.pipelines.checkpoint.checkpoint import Checkpoint, open_checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.registry_records import settle_writers
from ixion.pipelines.formats.schema import refuse_registry_records, settle_schema
from ixion.pipelines.run.backfill import Backfill, Backfilled
from ixion.pipelines.run.doctor import Diagnosis, examine
from ixion.pipelines.run.mend import Mend
from ixion.pipelines.run.moved_keys import refuse_moved_keys
from ixion.pipelines.run.progress import Progress
from ixion.pipelines.run.replay import Replay, Replayed
from ixion.pipelines.run.run import Run
from ixion.pipelines.sinks.change import Change
from ixion.pipelines.sinks.evolve import apply_changes, plan_changes
from ixion.pipelines.sinks.fit import add_columns, existing_table, refuse_other_quarantine, refuse_unfit
from ixion.pipelines.sinks.iceberg import iceberg_name
from ixion.pipelines.sinks.make import make_writer
from ixion.pipelines.sinks.shape import columns, plan_shape, shape_of
from ixion.pipelines.sinks.upsert import stored
from ixion.pipelines.source.example_orders import order_events
from ixion.pipelines.source.topics import find_topics, need_sink_brokers
from ixion.pipelines.spark.catalogs import register_catalogs
from ixion.pipelines.spark.explain import explain
from ixion.pipelines.spark.hadoop_files import Files
from ixion.pipelines.spark.session import jvm_pid, opened, start_spark
from ixion.pipelines.spec import PipelineSpec, load_spec
from ixion.pipelines.spec.sinks import TableSink, TopicSink
from ixion.pipelines.spec.source import Start
from ixion.pipelines.upkeep.results import Upkept
from ixion.pipelines.upkeep.schedule import Keeper

FOLLOW_MS: Final = 1000  # default between two batches when following


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run would do."""

    topics: dict[str, int]  # topic -> partitions
    records: int  # in the topics, holes included
    schema: str | None  # of the records
    columns: tuple[tuple[str, str], ...]  # name and type of the sinks' columns
    stateful: bool
    changes: tuple[tuple[str, str], ...] = ()  # table, what will be done to it before the first batch


class Pipeline:
    """A pipeline file, ready to be checked and run.

    pipeline = Pipeline.from_file("orders.toml")
    with pipeline.session() as spark:
        figures = pipeline.run(spark)
    """

    def __init__(self, spec: PipelineSpec) -> None:
        self.spec: Final = spec

    @classmethod
    def from_file(cls, path: str | Path) -> Pipeline:
        return cls(load_spec(Path(path)))

    @contextmanager
    def session(
        self,
        *,
        master: str | None = None,
        conf: dict[str, str] | None = None,
        jars: tuple[str, ...] = (),
        make_archive: bool = False,
        verbose: bool = False,
    ) -> Iterator[SparkSession]:
        """Spark with everything that this pipeline needs; arguments override the file.

        MAKE_ARCHIVE: if there is no class archive (see `class_archive`), create one after a successful end.
        """
        starting = start_spark(
            self.spec, master=master, conf=conf, jars=jars, make_archive=make_archive, verbose=verbose
        )
        with opened(starting) as spark:
            yield spark

    def check(self, spark: SparkSession, *, against: str | None = None) -> Plan:
        """Check settings, topics, schema and SQL; write nothing.

        AGAINST is a table, by its path or its name in a catalog: the plan has the changes that it would need to take
        the rows of this pipeline.
        """
        with _explained():
            if against is None:
                return self._check(spark)
            return Pipeline(self._with_table(against))._check(spark, evolve=True)

    def run(
        self,
        spark: SparkSession,
        *,
        follow: bool = False,
        every_ms: int | None = None,
        again: bool = False,
        new_rules: bool = False,
        report: Callable[[BatchFigures], None] = lambda _: None,
        started: Callable[[Progress], None] = lambda _: None,
        stage: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
        upkept: Callable[[Upkept], None] = lambda _: None,
    ) -> RunFigures:
        """Drain the topics and return; with FOLLOW, continue until `stop` of STARTED's Progress is called.

        STAGE is called with the present step until the first batch, WARN with problems that do not stop the run, UPKEPT
        with the result of upkeep.

        A new checkpoint does not know what tables already have, and a restored one does not know it exactly; AGAIN
        allows adding to them, and going on without what they lack. A half-written batch is
        finished by the rules it began with (see `rules_begun_with`), unless NEW_RULES.
        """
        with _explained():
            stage("checking tables and checkpoint")
            register_catalogs(self.spec, spark)
            checkpoint = self.checkpoint(spark)
            if not again and not checkpoint.used:
                self._refuse_filled_tables(spark)
            with checkpoint.locked(jvm_pid(spark)):
                pause_ms = every_ms or self.spec.every_ms or FOLLOW_MS
                if new_rules:
                    checkpoint.remember_rules(self.spec.rules)
                run = Run(
                    self.spec,
                    spark,
                    checkpoint,
                    lambda spec: Pipeline(spec)._stream(spark, checkpoint, pin=True),
                    again=again,
                    report=report,
                    started=started,
                    stage=stage,
                    warn=warn,
                    upkept=upkept,
                )
                return run.go(pause_ms if follow else None)

    def replay(
        self, spark: SparkSession, *, where: str | None = None, dry: bool = False, even_deleted: bool = False
    ) -> Replayed:
        """Process quarantined records again; those that now pass go into the tables and leave quarantine.

        WHERE, a SQL predicate over the columns of the quarantine, selects records. DRY: change nothing. EVEN_DELETED:
        rows that were deleted since may come back (see `extra_batch`).
        """
        with _explained():
            checkpoint = self._used_checkpoint(spark)
            with checkpoint.locked(jvm_pid(spark)):
                return self._replay(spark, checkpoint).go(where=where, dry=dry, even_deleted=even_deleted)

    def backfill(
        self,
        spark: SparkSession,
        first: Start,
        end: Start,
        *,
        dry: bool = False,
        even_deleted: bool = False,
        report: Callable[[BatchFigures], None] = lambda _: None,
    ) -> Backfilled:
        """Process records between FIRST and END that neither the stream nor an earlier backfill has read. EVEN_DELETED:
        rows that were deleted since may come back (see `extra_batch`)."""
        with _explained():
            checkpoint = self._used_checkpoint(spark)
            with checkpoint.locked(jvm_pid(spark)):
                topics = find_topics(spark, self.spec.source, checkpoint)
                backfill = self._backfill(spark, checkpoint)
                return backfill.go(topics, first, end, dry=dry, even_deleted=even_deleted, report=report)

    def mend(
        self, spark: SparkSession, *, dry: bool = False, report: Callable[[BatchFigures], None] = lambda _: None
    ) -> Backfilled:
        """Read again what tables have lost, because they were deleted or restored from a backup."""
        with _explained():
            checkpoint = self._used_checkpoint(spark)
            with checkpoint.locked(jvm_pid(spark)):
                find_topics(spark, self.spec.source, checkpoint)
                build = lambda spec: Pipeline(spec)._stream(spark, checkpoint, pin=True)  # noqa: E731
                return Mend(self.spec, spark, checkpoint, build).go(dry=dry, report=report)

    def examine(self, spark: SparkSession) -> Diagnosis:
        """Compare topics, checkpoint and tables, partition by partition; change nothing."""
        with _explained():
            register_catalogs(self.spec, spark)
            checkpoint = self.checkpoint(spark)
            checkpoint.refuse_foreign(self.spec)
            return examine(self.spec, spark, checkpoint)

    def upkeep(self, spark: SparkSession, *, due: bool = False) -> list[Upkept]:
        """Do the upkeep of the tables, at any time: see `upkeep` for what waits while a run is active. With DUE, only
        of tables whose time has come."""
        with _explained():
            checkpoint = self._used_checkpoint(spark)
            if not any(sink.upkeep.wanted for sink in self._tables()):
                raise PipelineError(f"pipeline {self.spec.name} has no [sinks.upkeep]")
            keeper = Keeper(self._tables(), self.spec.name, spark, checkpoint)
            return keeper.look_beside(lambda: checkpoint.free(jvm_pid(spark)), at_once=not due)

    def send_sample(self, spark: SparkSession, count: int) -> str:
        """Send COUNT example orders to the first topic, and return its name."""
        source = self.spec.source
        if not source.topics:
            raise PipelineError("a pattern names no topic to send to")
        with _explained():
            find_topics(spark, source, create=True)
            import pyarrow

            events = list(order_events(count))
            columns = {"key": [event.key for event in events], "value": [event.value for event in events]}
            frame = spark.createDataFrame(pyarrow.table(columns)).coalesce(1)  # Arrow needs no Python worker
            options = {name: value for name, value in source.options.items() if name.startswith("kafka.")}
            writer = frame.write.format("kafka").option("kafka.bootstrap.servers", source.bootstrap)
            writer.option("topic", source.topics[0]).options(**options).save()
        return source.topics[0]

    def checkpoint(self, spark: SparkSession | None = None) -> Checkpoint:
        return open_checkpoint(self.spec.checkpoint, Files(spark) if spark else None)

    def _used_checkpoint(self, spark: SparkSession) -> Checkpoint:
        register_catalogs(self.spec, spark)
        checkpoint = self.checkpoint(spark)
        checkpoint.refuse_foreign(self.spec)
        if not checkpoint.used:
            raise PipelineError(f"pipeline {self.spec.name} has not run yet", hint="run it first")
        return checkpoint

    def _replay(self, spark: SparkSession, checkpoint: Checkpoint) -> Replay:
        return Replay(self.spec, spark, checkpoint, lambda spec: Pipeline(spec)._stream(spark, checkpoint, pin=True))

    def _backfill(self, spark: SparkSession, checkpoint: Checkpoint) -> Backfill:
        return Backfill(self.spec, spark, checkpoint, lambda spec: Pipeline(spec)._stream(spark, checkpoint, pin=True))

    def _with_table(self, place: str) -> PipelineSpec:
        """The file's specification, with its first table elsewhere."""
        tables = self._tables()
        if not tables:
            raise PipelineError("the sinks have no table to compare with another")
        path, table = (place, "") if "/" in place or tables[0].format != "iceberg" else ("", place)
        path = path if "://" in path or not path else str(Path(path).absolute())
        other = replace(tables[0], path=path, table=table, evolve=True)
        return replace(self.spec, sinks=tuple(other if sink is tables[0] else sink for sink in self.spec.sinks))

    def _check(self, spark: SparkSession, *, evolve: bool = False) -> Plan:
        spec, checkpoint = self.spec, self.checkpoint(spark)
        register_catalogs(spec, spark)
        checkpoint.refuse_foreign(spec)
        topics = find_topics(spark, spec.source, checkpoint)
        need_sink_brokers(spark, spec.sinks)
        refuse_moved_keys(spec, checkpoint, {name: len(topic.end) for name, topic in topics.items()})
        refuse_registry_records(spark, spec, topics, checkpoint)
        if evolve and not existing_table(self._tables()[0], spark).columns:
            raise PipelineError(f"there is no table {self._tables()[0].label}")
        stream = self._stream(spark, checkpoint, pin=False)
        return Plan(
            topics={**dict.fromkeys(spec.source.topics, 0), **{name: len(topic.end) for name, topic in topics.items()}},
            records=sum(topic.end[number] - topic.first[number] for topic in topics.values() for number in topic.end),
            schema=stream.schema,
            columns=tuple((field.name, field.dataType.simpleString()) for field in stream.result.schema.fields),
            stateful=stream.stateful,
            changes=tuple(self._changes(spark, stream)),
        )

    def _stream(self, spark: SparkSession, checkpoint: Checkpoint, *, pin: bool) -> Stream:
        spec = self.spec
        if spec.format.registry is not None:
            spec = replace(spec, format=settle_writers(spec, checkpoint))
        stream = build_stream(spark, spec, settle_schema(spark, spec, checkpoint, pin=pin))
        for sink in self.spec.sinks:
            if isinstance(sink, TableSink):
                need_columns(stream.result, f"partition_by of {sink.label}", columns(sink.partition_by))
                fields = stream.result.schema.fields
                if sink.upsert is not None:
                    fields = stored(fields, sink.upsert)
                _need_table_columns(sink, "cluster_by", sink.upkeep.cluster_by, fields, spark)
                sorted_by = (text.replace("`", "").split()[0] for text in sink.sort_by)
                _need_table_columns(sink, "sort_by", sorted_by, fields, spark)
                grows = self.spec.format.drift.new == "add"
                refuse_unfit(sink, fields, spark, grows=grows)
                if sink.evolve and pin:
                    apply_changes(sink, _planned(sink, fields, spark), spark)
                elif grows and pin:
                    add_columns(sink, fields, spark)
            elif isinstance(sink, TopicSink):
                need_columns(stream.result, f"key of {sink.label}", [sink.key] if sink.key else [])
                need_columns(stream.result, f"value of {sink.label}", [sink.value] if sink.value else [])
        refuse_other_quarantine(self.spec.quarantine, spark)
        return stream

    def _changes(self, spark: SparkSession, stream: Stream) -> Iterator[tuple[str, str]]:
        for sink in self._tables():
            fields = stream.result.schema.fields
            planned = _planned(sink, stored(fields, sink.upsert) if sink.upsert else fields, spark)
            yield from ((sink.label, change.line()) for change in planned)

    def _tables(self) -> list[TableSink]:
        return [sink for sink in self.spec.sinks if isinstance(sink, TableSink)]

    def _refuse_filled_tables(self, spark: SparkSession) -> None:
        for sink in self.spec.sinks:
            if isinstance(sink, TableSink):
                refuse_unfit(sink, None, spark)
            if make_writer(sink, spark).knows(self.spec.name):
                message = f"{sink.label} has rows of this pipeline, but the checkpoint {self.spec.checkpoint} is new"
                hint = (
                    "records would be written again from where source.start says; put the old checkpoint back, or "
                    "remove the table too, or run with --again if that is what you want"
                )
                raise PipelineError(message, hint=hint)


def _need_table_columns(
    sink: TableSink, setting: str, names: Iterable[str], fields: list[StructField], spark: SparkSession
) -> None:
    """Raises if SETTING names a column that is neither in FIELDS, the columns of the rows, nor in the table."""
    unknown = [name for name in names if name.lower() not in {field.name.lower() for field in fields}]
    if unknown:
        there = existing_table(sink, spark).columns
        for name in unknown:
            if name.lower() not in there:
                hint = f"there are: {', '.join(field.name for field in fields)}"
                raise PipelineError(f"{setting} of {sink.label}: there is no column {name}", hint=hint)


def _planned(sink: TableSink, fields: list[StructField], spark: SparkSession) -> list[Change]:
    there = existing_table(sink, spark).schema
    if not sink.evolve or not there.fields or sink.format == "parquet":
        return []
    changes = plan_changes(sink, there, StructType(fields))
    if sink.partition_by or sink.sort_by or sink.properties:
        name = f"delta.`{sink.path}`" if sink.format == "delta" else iceberg_name(sink, spark)
        changes += plan_shape(sink, shape_of(name, sink.format, spark))
    return changes


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if _was_interrupted(error):
            raise KeyboardInterrupt from None
        raise explain(error) from error


def _was_interrupted(error: BaseException) -> bool:
    """Whether ERROR came after Ctrl-C: a call to the JVM that is interrupted lets the calls that clean up fail."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__context__
    return cause is not None
