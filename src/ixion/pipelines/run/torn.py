"""Puts right the last file of Spark's two logs in a checkpoint, if it is torn.

A machine that loses its power can leave files that are empty or end too early, and Spark then refuses the checkpoint.
What was in them is known from elsewhere:

    commits/12    batch 12 is done          remove it: the batch comes again, and each table says whether it has it
    offsets/12    where batch 12 ends       no table has more than batch 11: it had not been written, so remove it
                                            a table has more: it has batch 12, so the batch ends where the table ends
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from ixion.pipelines.batch.metrics import Offsets
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.run.agreement import look
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink


def mend_torn(spec: PipelineSpec, spark: SparkSession, checkpoint: Checkpoint, warn: Callable[[str], None]) -> None:
    """PipelineError if the tables do not tell where the batch ends."""
    if not checkpoint.used:
        return
    if (number := checkpoint.torn("offsets")) is not None:
        before = checkpoint.offsets(number - 1)
        told: list[Offsets] = []
        for sink in spec.sinks:
            if isinstance(sink, TableSink):
                there, numbers = look(sink, spec, spark, checkpoint)
                if (there is None and numbers) or not before:
                    raise checkpoint.torn_error(f"offsets/{number}")  # an earlier version wrote the table
                if there is not None and there.offsets != before:
                    told.append(there.offsets)
        if any(one != told[0] for one in told):
            raise checkpoint.torn_error(f"offsets/{number}")
        if told:
            checkpoint.rewrite_offsets(number, told[0])
            warn(f"{checkpoint.path}/offsets/{number} was torn: written again by what the tables have")
        else:
            checkpoint.drop("offsets", number)
            warn(f"{checkpoint.path}/offsets/{number} was torn: removed, because no table has this batch")
    if (number := checkpoint.torn("commits")) is not None:
        checkpoint.drop("commits", number)
        warn(f"{checkpoint.path}/commits/{number} was torn: removed, so the batch is checked again")
