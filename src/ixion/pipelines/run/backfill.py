"""Reads older records that a pipeline has not read, into the same tables: `ixion pipeline backfill`.

A pipeline that began at `latest`, or at a time, has never read the records before. A backfill reads a range of the
topics without what has been read already: by the stream, from where it began to where it is now, and by earlier
backfills. So no record comes into a table twice, however often a backfill is repeated. Records ahead of the stream are
left to the stream.

    topic            0 ............ 1000 ........... 1800
    the stream                      began ......... is here
    backfill 0 to 1500  reads 0 to 1000; again: reads nothing

First the offsets to read are written to the checkpoint, in batches. Each is then written as a batch beside the stream
(see `extra_batch`), and a mark says that it is done. A backfill that was killed is finished by the next one, or by the
next run, before anything else. The notes stay, because they say what has been read.

    <checkpoint>/ixion/backfill/ID/plan.json        batches: [[topic, partition, first, end], …]
    <checkpoint>/ixion/backfill/ID/000000007        batch 7 is done
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.batch.metrics import BatchFigures, Offsets, RunFigures
from ixion.pipelines.batch.plan import Stream
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.run.extra_batch import refuse_memory, refuse_removed, write_extra
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.source.broker import SourceBroker
from ixion.pipelines.source.lost_records import Topic
from ixion.pipelines.source.offset_ranges import Portion, Range, in_batches, left_of
from ixion.pipelines.source.read import source_options
from ixion.pipelines.spark.explain import is_loss
from ixion.pipelines.spark.hadoop_files import Files
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.source import Start

MOST: Final = 1_000_000  # offsets in a batch, unless the file says how many


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfilled:
    portions: tuple[Portion, ...] = ()  # offsets that were left to read
    figures: RunFigures = field(default_factory=RunFigures)


class Backfill:
    def __init__(
        self, spec: PipelineSpec, spark: SparkSession, checkpoint: Checkpoint, build: Callable[[PipelineSpec], Stream]
    ) -> None:
        """BUILD gives the plan of a pipeline."""
        self._spec: Final = spec
        self._spark: Final = spark
        self._checkpoint: Final = checkpoint
        self._build: Final = build
        self._files: Final = Files(spark)
        self._folder: Final = f"{checkpoint.path}/ixion/backfill"

    def finish(self, report: Callable[[BatchFigures], None] = lambda _: None) -> RunFigures:
        """Write all noted batches that are not done."""
        figures = RunFigures()
        for name in self._files.names(self._folder):
            done = set(self._files.names(f"{self._folder}/{name}"))
            for number, portions in enumerate(self._plan(name)):
                if f"{number:09d}" not in done:
                    batch = self._write(name, number, portions)
                    figures = figures.plus(batch)
                    report(batch)
        return figures

    def go(
        self,
        topics: Mapping[str, Topic],
        first: Start,
        end: Start,
        *,
        dry: bool = False,
        even_deleted: bool = False,
        report: Callable[[BatchFigures], None] = lambda _: None,
    ) -> Backfilled:
        """TOPICS is their present state; FIRST and END are times, `earliest` or `latest`. DRY: write nothing.
        EVEN_DELETED: rows that were deleted since may come back."""
        stream = self._build(self._spec)
        refuse_memory(stream, "backfill")
        begun, position = self._checkpoint.begun(), self._checkpoint.position()
        if position is None or not self._checkpoint.settled:
            hint = "run the pipeline first, then backfill"
            raise PipelineError("this pipeline has not run yet, or its last batch is not finished", hint=hint)
        if begun is None:  # Spark notes it for its own connector only
            message = 'the first run had reader = "ixion", so the checkpoint does not tell where it began'
            raise PipelineError(message, hint="only a pipeline whose first run used the connector has a backfill")
        if self._spec.source.loss_allowed:
            hint = "remove failOnDataLoss = false: then a pipeline knows what it has read"
            raise PipelineError("a pipeline that may lose records does not know which it has read", hint=hint)
        portions = tuple(self._left(topics, first, end, begun, position))
        if dry or not portions:
            return Backfilled(portions=portions, figures=RunFigures() if dry else self.finish(report))
        if not even_deleted:
            refuse_removed(self._spec, stream, "backfill")
        batches = in_batches(portions, self._spec.source.max_records_per_batch or MOST)
        plan = [[astuple(portion) for portion in batch] for batch in batches]
        self._files.write_new(f"{self._folder}/{uuid.uuid4()}/plan.json", json.dumps(plan))
        return Backfilled(portions=portions, figures=self.finish(report))

    def _left(
        self, topics: Mapping[str, Topic], first: Start, end: Start, begun: Offsets, position: Offsets
    ) -> list[Portion]:
        starts, ends = self._offsets(topics, first), self._offsets(topics, end)
        noted = [portion for name in self._files.names(self._folder) for one in self._plan(name) for portion in one]
        left = []
        for name, topic in sorted(topics.items()):
            for partition in sorted(position.get(name, {}), key=int):
                reached = position[name][partition]
                wanted = max(starts[name][partition], topic.first[partition]), min(ends[name][partition], reached)
                read: list[Range] = [(begun.get(name, {}).get(partition, 0), reached)]
                read += [(one.first, one.end) for one in noted if (one.topic, one.partition) == (name, int(partition))]
                left += [Portion(name, int(partition), *part) for part in left_of(wanted, read)]
        return left

    def _offsets(self, topics: Mapping[str, Topic], place: Start) -> Offsets:
        """The offset of PLACE in each partition."""
        if place.kind == "earliest":
            return {name: topic.first for name, topic in topics.items()}
        if place.kind == "latest":
            return {name: topic.end for name, topic in topics.items()}
        source = self._spec.source
        with SourceBroker(self._spark, source.bootstrap, source.options) as broker:
            found = broker.ends({name: len(topic.end) for name, topic in topics.items()}, time_ms=place.time_ms)
        return {  # -1: no record is that young
            name: {
                number: topic.end[number] if found[name][number] < 0 else found[name][number] for number in topic.end
            }
            for name, topic in topics.items()
        }

    def _plan(self, name: str) -> list[list[Portion]]:
        """Empty if the backfill ended before it had noted its plan: it was killed, or the disk was full."""
        path = f"{self._folder}/{name}/plan.json"
        batches = json.loads(self._files.read(path)) if self._files.exists(path) else []
        return [[Portion(*portion) for portion in batch] for batch in batches]

    def _write(self, name: str, number: int, portions: list[Portion]) -> BatchFigures:
        place = f"{self._folder}/{name}"
        work = f"{self._checkpoint.path}/ixion/backfill-{name}"  # not in the folder of the notes
        try:
            figures = write_extra(
                self._spec,
                self._spark,
                self._checkpoint,
                self._build,
                read_portions(self._spec, self._spark, portions),
                batch=Batch(pipeline=self._spec.name, query=name, number=number),
                work=work,
            )
        except Exception as error:
            raise (lost_before_read(portions) if is_loss(error) else error) from error
        self._files.write_new(f"{place}/{number:09d}", "")
        self._files.remove(work)
        return figures


def lost_before_read(portions: list[Portion]) -> PipelineError:
    wanted = ", ".join(f"{one.topic}-{one.partition} {one.first} to {one.end - 1}" for one in portions)
    message = f"records of a backfill were deleted before it had read them, among the offsets {wanted}"
    hint = 'to finish it with those that are left: run once with [source.options] failOnDataLoss = "false"'
    return PipelineError(message, hint=hint)


def read_portions(spec: PipelineSpec, spark: SparkSession, portions: list[Portion]) -> DataFrame:
    """At most one portion of each partition."""
    partitions: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for portion in portions:
        partitions.setdefault(portion.topic, []).append(portion.partition)
        starts.setdefault(portion.topic, {})[str(portion.partition)] = portion.first
        ends.setdefault(portion.topic, {})[str(portion.partition)] = portion.end
    options = {
        **source_options(replace(spec.source, pattern=None, start=Start()), spark),
        "includeHeaders": "true",
        "assign": json.dumps(partitions),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
    }
    del options["subscribe"]  # only these partitions
    return spark.read.format("kafka").options(**options).load()
