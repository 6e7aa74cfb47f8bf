"""A batch is judged by one set of rules, even if the file changes while the batch is half written.

The table is written first, the quarantine after it. If a run is killed in between and the batch is repeated, the table
has it already, so only the quarantine is written. With looser rules than in the first attempt, a record that is not in
the table would no longer be bad, and would be lost:

    n < 2     table: 1      killed      the quarantine lacks 5
    n < 10    table: has the batch      5 is not bad: lost

So the rules are kept in the checkpoint before a batch begins. A batch that is in some table is finished by the kept
rules; then the run continues with those of the file. A batch that is in no table takes the rules of the file, which may
have been corrected for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.sinks.make import make_writer
from ixion.pipelines.spark.explain import explain
from ixion.pipelines.spark.hadoop_files import Files
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.rules import with_rules


def begun_with(spec: PipelineSpec, kept: Mapping[str, Any] | None, batch: Batch, spark: SparkSession) -> PipelineSpec:
    """SPEC; or, if BATCH is in a table already, SPEC with the KEPT rules that it began with."""
    if kept is None or kept == spec.rules:
        return spec
    there = any(make_writer(sink, spark).has(batch) for sink in (*spec.sinks, spec.quarantine))
    return with_rules(spec, kept) if there else spec


def settle_rules(spec: PipelineSpec, folder: str, batch: Batch, spark: SparkSession) -> PipelineSpec:
    """As `begun_with`, for a batch outside the stream, whose rules are kept in FOLDER until it is done."""
    files, path = Files(spark), f"{folder}/rules.json"
    kept = json.loads(files.read(path)) if files.exists(path) else None
    found = begun_with(spec, kept, batch, spark)
    if found.rules != kept:
        files.write(path, json.dumps(found.rules))
    return found


@contextmanager
def finishing(number: int) -> Iterator[None]:
    """Explains errors while batch NUMBER is finished by rules that are no longer in the file."""
    try:
        yield
    except Exception as error:
        told = explain(error)
        if told.retry:
            raise
        hint = (
            f"a table has batch {number} already, so it is finished by the format, steps and expectations of then; put "
            "them back for one run, or run with --new-rules: records that were bad then and are good now are then lost"
        )
        raise PipelineError(str(told), hint=hint) from error
