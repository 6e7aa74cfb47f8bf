"""Keeps rows that several passes need and that might differ between passes.

Every pass over a plan computes it again. Most plans give the same rows each time. A plan that uses the clock, random
numbers, a table or a user's function may not: one pass could then leave a record out of the table, and another pass out
of the quarantine. Such rows are first written to the checkpoint, and every pass reads them from there. A batch that is
repeated after a crash finds them too, so all its sinks and the quarantine have the same rows.

    <checkpoint>/ixion/kept/000000012-records/….parquet     put in place by one rename; removed with the next batch
"""

from __future__ import annotations

import re
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.spark.hadoop_files import Files, one_path
from ixion.pipelines.spark.java_classes import java_class

# As Spark names them. Expressions: functions of the user's, the time. Steps of a plan: tables, functions of the user's,
# and those for which chance decides which of two equal rows is the first.
_FUNCTIONS: Final = ("PYTHON_UDF", "SCALA_UDF")
_CLOCK: Final = "CURRENT_LIKE"
_STEPS: Final = (
    r"(?:Hive(?:Table)?)?Relation(?:V2)?|\w*(?:InPandas|InArrow)\w*|Map\w+|\w*Python\w*|Window|\w*Limit|Sample"
)
_UNFIT: Final = ("void", "interval")  # types that a Parquet file cannot hold


def may_change(frame: DataFrame, *, clock: bool) -> bool:
    """Whether two passes over FRAME might give different rows. With CLOCK, functions of the time count too.

    In the plan of a stream they do not: there the time is that of the batch, even if the batch is repeated.
    """
    plan = frame._jdf.queryExecution().analyzed()
    patterns = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.trees.TreePattern")
    for name in (*_FUNCTIONS, _CLOCK) if clock else _FUNCTIONS:
        if plan.containsPattern(getattr(patterns, name)()):
            return True
    heads = (line.lstrip(" :+-~") for line in plan.toString().splitlines())
    return not plan.deterministic() or any(re.match(rf"(?:{_STEPS})\b", head) for head in heads)


class StableRows:
    def __init__(self, checkpoint: str, spark: SparkSession) -> None:
        self._folder: Final = f"{checkpoint}/ixion/kept"
        self._files: Final = Files(spark)

    def once(self, frame: DataFrame, batch: int, name: str) -> DataFrame:
        """FRAME as it was computed first for BATCH, in this run or an earlier one."""
        path = f"{self._folder}/{batch:09d}-{name}"
        if not self._files.exists(path):
            frame.write.mode("overwrite").parquet(f"{path}.unfinished")
            self._files.rename(f"{path}.unfinished", path)
        return frame.sparkSession.read.schema(frame.schema).parquet(one_path(path))

    def forget(self, but: int | None = None) -> None:
        """Removes the rows of all batches, or of all BUT one."""
        for name in self._files.names(self._folder):
            if but is None or not name.startswith(f"{but:09d}-"):
                self._files.remove(f"{self._folder}/{name}")


def can_be_kept(frame: DataFrame) -> bool:
    return not any(word in frame.schema.simpleString() for word in _UNFIT)
