"""Processes quarantined records again: `ixion pipeline replay`.

Records that the pipeline now accepts, because the file or its schema was corrected, leave the quarantine and go through
the pipeline into its tables. Those that are still bad stay. No record is lost or written twice, even if the replay is
killed at any moment:

    1  decide    the records that pass are written to       <checkpoint>/ixion/replay/ID
    2  remove    they are removed from the quarantine
    3  note      that they are removed                      <checkpoint>/ixion/replay/ID.removed
    4  write     one batch outside the stream, named by the id (see `extra_batch`)
    5  forget    the folder of step 1 is removed

The next replay, or the next run, continues with what it finds there before it does anything else. Steps 2 and 4 change
nothing when they are repeated, and after 3 nothing is removed any more: a record that 4 finds bad after all, by the
clock, goes back into the quarantine and stays there. Nothing else writes meanwhile: the checkpoint is locked, and an
unfinished batch of the stream must be finished first.

A row that broke an expectation after the steps is no record any more, and stays.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.batch.new_fields import add_new_fields
from ixion.pipelines.batch.plan import Stream
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.added_columns import REASON, RECORD
from ixion.pipelines.run.extra_batch import refuse_memory, refuse_removed, write_extra
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.sinks.remove_records import PLACE, quarantine_rows, remove_rows
from ixion.pipelines.spark.explain import has_grown
from ixion.pipelines.spark.hadoop_files import Files, one_path
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.upkeep.join_parquet import finish_compaction

_REMOVED: Final = ".removed"
_UNFINISHED: Final = ".unfinished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    tried: int = 0
    taken: BatchFigures = field(default_factory=lambda: BatchFigures(batch=0))
    still_bad: dict[str, int] = field(default_factory=dict)  # reason -> records, the most frequent first


class Replay:
    def __init__(
        self, spec: PipelineSpec, spark: SparkSession, checkpoint: Checkpoint, build: Callable[[PipelineSpec], Stream]
    ) -> None:
        """BUILD gives the plan of a pipeline."""
        self._spec: Final = spec
        self._spark: Final = spark
        self._checkpoint: Final = checkpoint
        self._build: Final = build
        self._files: Final = Files(spark)
        self._folder: Final = f"{checkpoint.path}/ixion/replay"

    def finish(self) -> None:
        """Finish a replay that was killed."""
        for name in self._files.names(self._folder):
            if name.endswith(_UNFINISHED):
                self._files.remove(f"{self._folder}/{name}")
            else:
                self._write(name)

    def go(self, *, where: str | None = None, dry: bool = False, even_deleted: bool = False) -> Replayed:
        """WHERE is a SQL predicate over the columns of the quarantine. DRY: only report what would happen.
        EVEN_DELETED: rows that were deleted since may come back."""
        stream = self._build(self._spec)
        refuse_memory(stream, "replay")
        if not self._checkpoint.settled:
            hint = "run the pipeline first, then replay"
            raise PipelineError("the last batch of this pipeline is not finished", hint=hint)
        if not dry:
            self.finish()
        tried = self._chosen(where)
        if tried is None:
            return Replayed()
        bad, still_bad = self._bad(tried, stream, dry)
        count = tried.count()
        taken = BatchFigures(batch=0, rows_in=count - sum(still_bad.values()))
        if not dry and taken.rows_in:
            if not even_deleted:
                refuse_removed(self._spec, stream, "replay")
            good = tried.join(bad.select(*PLACE), list(PLACE), "left_anti").select(*tried.columns)
            name = str(uuid.uuid4())
            good.write.parquet(f"{self._folder}/{name}{_UNFINISHED}/records")
            self._files.rename(f"{self._folder}/{name}{_UNFINISHED}", f"{self._folder}/{name}")
            taken = self._write(name)
        return Replayed(tried=count, taken=taken, still_bad=still_bad)

    def _bad(self, tried: DataFrame, stream: Stream, dry: bool) -> tuple[DataFrame, dict[str, int]]:
        """The records of TRIED that are still bad, and how many have which reason now."""
        while True:
            places = [F.col(f"{RECORD}.{name}") for name in PLACE]
            judged = stream.judging(tried).select(*places, F.col(REASON).alias("reason"))
            try:
                # Without its plan: a filter and a join on top of it, which Spark pushes into every expression of the
                # parser, took half a minute to plan.
                bad = judged.localCheckpoint().where("reason IS NOT NULL AND offset IS NOT NULL")
                found = bad.groupBy("reason").count().collect()
            except Exception as error:
                if not has_grown(error):
                    raise
                if dry:
                    raise PipelineError("the records have new fields, which a replay makes columns") from error
                if not add_new_fields(self._spark, self._spec, self._checkpoint, tried):
                    raise
                stream = self._build(self._spec)
                continue
            counts = {str(row["reason"]): int(row["count"]) for row in found}
            return bad, dict(sorted(counts.items(), key=lambda each: -each[1]))

    def _chosen(self, where: str | None) -> DataFrame | None:
        rows = quarantine_rows(self._spec.quarantine, self._spec.name, self._spark)
        if rows is None:
            return None
        source, topic = self._spec.source, F.col("topic")
        mine = topic.rlike(f"^(?:{source.pattern})$") if source.pattern else topic.isin(*source.topics)
        chosen = rows.where(mine) if where is None else rows.where(mine).where(where)
        return chosen.dropDuplicates(list(PLACE)).drop("reason")

    def _write(self, name: str) -> BatchFigures:
        """Steps 2 to 5."""
        spec, place = self._spec, f"{self._folder}/{name}"
        if not name.endswith(_REMOVED):
            if spec.quarantine.format == "parquet":
                finish_compaction(spec.quarantine, spec.name, self._spark)
            places = self._spark.read.parquet(one_path(f"{place}/records")).select(*PLACE)
            remove_rows(spec.quarantine, spec.name, places, self._spark)
            self._files.rename(place, f"{place}{_REMOVED}")
            place += _REMOVED
        figures = write_extra(
            spec,
            self._spark,
            self._checkpoint,
            self._build,
            self._spark.read.parquet(one_path(f"{place}/records")),
            batch=Batch(pipeline=spec.name, query=name.removesuffix(_REMOVED), number=0),
            work=place,
        )
        self._files.remove(place)
        return figures
