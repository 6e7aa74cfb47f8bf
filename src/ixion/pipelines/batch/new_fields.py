"""New fields of JSON records become columns: `drift.new = "add"`.

A batch that meets a field which is not in the schema ends before anything of it is written. The records of the batch
are searched for new fields, these are noted in the checkpoint, and the stream is started again: the same batch, with
the same offsets, is then read with the columns it needs. So no value is lost, not even of the first record.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.batch.metrics import Offsets
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.drift import unfit_names
from ixion.pipelines.formats.nested_fields import ddl, inner_names, type_at, unfit_inner
from ixion.pipelines.formats.parse import record_schema
from ixion.pipelines.formats.schema import SAMPLE, infer_json, settle_schema
from ixion.pipelines.source.read import read_source
from ixion.pipelines.spec.pipeline import PipelineSpec
from ixion.pipelines.spec.source import SourceSpec, Start

MOST: Final = 200  # columns that are added to one pipeline; records whose keys are data would add them for ever


def add_new_fields(
    spark: SparkSession, spec: PipelineSpec, checkpoint: Checkpoint, records: DataFrame | None = None
) -> list[str]:
    """Note the new fields of RECORDS with their types, and return their names. None: those of the unfinished batch."""
    schema = settle_schema(spark, spec, checkpoint, pin=True)
    struct = record_schema(replace(spec.format, schema=schema))
    known = struct.names
    text = F.col("value").cast("string")
    new = F.array_except(F.json_object_keys(text), F.array(*(F.lit(name) for name in known)))
    unfit = unfit_names(new, known)
    inner = inner_names(struct, text)
    if inner is not None:
        new, unfit = F.concat(new, inner), F.concat(unfit, unfit_inner(inner, struct))
    if records is None:
        records = read_source(spark, _of_batch(spec.source, checkpoint), streaming=False, headers=False)
    fitting = (F.size(new) > 0) & (F.size(unfit) == 0)  # others go to the quarantine
    rows = records.where(fitting).limit(SAMPLE).select(text, new).collect()
    names = sorted({name for row in rows for name in row[1]})
    found = infer_json(spark, [row[0] for row in rows])
    types = {name: ddl(type_at(found or T.StructType(), name)) for name in names}
    added = {**checkpoint.added_fields(), **types}
    if len(added) > MOST:
        message = (
            f"the records bring more than {MOST} fields that are not in the schema, such as {', '.join(names[:3])}"
        )
        hint = 'are their keys data? [format.drift] new = "keep" puts such fields into one column, _extra, as JSON'
        raise PipelineError(message, hint=hint)
    checkpoint.remember_added(added)
    return names


def _of_batch(source: SourceSpec, checkpoint: Checkpoint) -> SourceSpec:
    """SOURCE with only the records of the unfinished batch."""
    end = checkpoint.newest_offsets()
    start = checkpoint.position() or {}
    options = {**source.options, "startingOffsets": _starting(start, end), "endingOffsets": json.dumps(end)}
    topics = tuple(end)
    return replace(source, topics=topics, pattern=None, start=Start(), options=options)


def _starting(start: Offsets, end: Offsets) -> str:
    """A new partition starts with its first record, -2."""
    offsets: Mapping[str, Mapping[str, int]] = {
        topic: {partition: start.get(topic, {}).get(partition, -2) for partition in partitions}
        for topic, partitions in end.items()
    }
    return json.dumps(offsets)
