"""Exactly once into Delta: the table's log keeps the number of each writer's last transaction.

A repeated batch has a number that is not newer, and Delta skips it (`txnAppId`, `txnVersion`). Before the first batch
of a run we read the log, so that the rows of a batch that the table already has are not computed. Later batches of a
run cannot be in the table, because Spark repeats only the last batch of the run before.

Numbers survive a RESTORE of the table, rows do not. So each commit also tells what the table has then (see `reached`),
in its `userMetadata`. We look for it from the newest version back; a RESTORE leads on to the version that it restored:

    version   5 RESTORE to 2     4 ours, offset 50     3 OPTIMIZE     2 ours, offset 30       the table has 30
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.sinks.base import Batch, writers_of
from ixion.pipelines.sinks.evolve import is_wider
from ixion.pipelines.sinks.reached import Reached, nothing, reached_of
from ixion.pipelines.spark.hadoop_files import Files
from ixion.pipelines.spark.java_classes import java_class
from ixion.pipelines.spec.sinks import TableSink


class DeltaWriter:
    is_table = True

    def __init__(self, sink: TableSink, spark: SparkSession) -> None:
        self.sink: Final = sink
        self._spark: Final = spark
        self._asked = False
        self._last: int | None = None  # number of the last batch in the table
        self._wider: dict[str, T.DataType] | None = None

    def has(self, batch: Batch) -> bool:
        if self._asked:
            return False
        self._asked = True
        self._last = self.last(batch)
        return batch.is_done(self.reached(batch), self._last)

    def knows(self, pipeline: str) -> bool:
        return any(re.match(writers_of(pipeline), writer) for writer in self._last_batches())

    def last(self, batch: Batch) -> int:
        return self._last_batches().get(batch.writer, -1)

    def reached(self, batch: Batch) -> Reached | None:
        if not self._asked:  # before a run: the files of the table may have been exchanged while this Spark ran
            path = java_class(self._spark, "org.apache.hadoop.fs.Path")(self.sink.path)
            logs = java_class(self._spark, "org.apache.spark.sql.delta.DeltaLog")
            logs.invalidateCache(self._spark._jsparkSession, path)
        snapshot = self._snapshot()
        version = -1 if snapshot is None else int(snapshot.version())
        kept = version  # newer versions were undone by a RESTORE
        had_any = False
        while (info := self._commit_info(version)) is not None:
            found = reached_of(info.get("userMetadata"), batch.writer)
            if found is not None and version <= kept:
                return found
            had_any = had_any or found is not None
            if version <= kept:
                kept = self._before(version, info)
            version -= 1
        return nothing(batch.writer) if had_any else None

    def place(self, batch: Batch) -> int:
        """The number of the transaction for BATCH; the next call is for the next batch."""
        if batch.reached is None:
            return batch.number
        if self._last is None:
            self._last = self.last(batch)
        self._last = batch.place(self._last)
        return self._last

    def _before(self, version: int, info: dict[str, Any]) -> int:
        """The version that has what VERSION had before its commit; after a RESTORE, the restored one."""
        if info.get("operation") != "RESTORE":
            return version - 1
        words = info.get("operationParameters", {})
        if (restored := words.get("version")) is not None:
            return int(str(restored).strip('"'))
        when = str(words.get("timestamp")).strip('"')
        time_ms = self._spark.sql("SELECT unix_millis(CAST(:when AS TIMESTAMP))", args={"when": when}).collect()[0][0]
        version -= 1
        while (older := self._commit_info(version)) is not None and int(older.get("timestamp", 0)) > time_ms:
            version -= 1
        return version

    def _commit_info(self, version: int) -> dict[str, Any] | None:
        """What the log tells about a commit; None if it is no longer there."""
        files, path = Files(self._spark), f"{self.sink.path}/_delta_log/{version:020d}.json"
        if version < 0 or not files.exists(path):
            return None
        for line in files.read(path).splitlines():
            if "commitInfo" in (action := json.loads(line)):
                return dict(action["commitInfo"])
        return {}

    def _snapshot(self) -> Any:
        """Delta's own object for the present table; None if there is none."""
        if not Files(self._spark).has_table_log(self.sink.path):
            return None
        logs = java_class(self._spark, "org.apache.spark.sql.delta.DeltaLog")
        return logs.forTable(self._spark._jsparkSession, self.sink.path).unsafeVolatileSnapshot()

    def _last_batches(self) -> dict[str, int]:
        """Writer -> number of its last transaction."""
        snapshot = self._snapshot()
        if snapshot is None:
            return {}
        found = snapshot.transactions().iterator()
        batches = {}
        while found.hasNext():
            entry = found.next()
            batches[str(entry._1())] = int(entry._2())
        return batches

    def create(self, empty: DataFrame) -> None:
        """Create the table with the columns of EMPTY, unless it exists."""
        if not Files(self._spark).has_table_log(self.sink.path):
            writer = empty.write.format("delta").mode("append").partitionBy(*self.sink.partition_by)
            writer.options(**self.sink.properties, **self.sink.options).save(self.sink.path)

    def _casts(self, frame: DataFrame) -> dict[str, T.DataType]:
        """Columns of FRAME that are wider in the table. Delta does not widen all of them itself."""
        if self._wider is None:
            self._wider = {}
            if Files(self._spark).has_table_log(self.sink.path):
                table = self._spark.read.format("delta").load(self.sink.path).schema
                there = {field.name.lower(): field.dataType for field in table.fields}
                for field in frame.schema.fields:
                    kind = there.get(field.name.lower(), field.dataType)
                    if is_wider(kind, field.dataType):
                        self._wider[field.name] = kind
        return self._wider

    def write(self, frame: DataFrame, batch: Batch) -> None:
        frame = frame.withColumns({name: F.col(f"`{name}`").cast(kind) for name, kind in self._casts(frame).items()})
        writer = frame.write.format("delta").mode("append").partitionBy(*self.sink.partition_by)
        writer = writer.option("txnAppId", batch.writer).option("txnVersion", self.place(batch))
        if batch.reached is not None:
            writer = writer.option("userMetadata", batch.reached.to_text())
        writer.options(**self.sink.properties, **self.sink.options).save(self.sink.path)
