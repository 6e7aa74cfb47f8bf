"""Compares tables and checkpoint before a run: does each table have what the checkpoint has noted as written?

Each can be restored from a backup, or deleted, without the other. Compared are three places of each partition: where
the checkpoint continues, where its unfinished batch ends, and what the table has (see `sinks.reached`).

A   the table has what the checkpoint has noted             go on
B   the table has the unfinished batch too                  go on: the batch is done there
C   the table has less                                      it was restored or deleted: the records in between lack
D   the table has more                                      the checkpoint was restored: the records in between would
                                                            be written again
E   the table tells nothing, but has batches                it was written by an earlier version: go on, with one line
F   the table has nothing, and the checkpoint has noted it  C, of everything
G   the table has nothing, and is new to the checkpoint     go on: a sink that was added to the file

    checkpoint 0 to 50      table 0 to 30      C: offsets 30 to 49 are missing
    checkpoint 0 to 30      table 0 to 50      D: offsets 30 to 49 would be doubled
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from ixion.pipelines.batch.metrics import Offsets
from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.sinks.make import make_table
from ixion.pipelines.sinks.reached import Reached
from ixion.pipelines.source.offset_ranges import Portion
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink

SHOWN: Final = 4  # of the ranges, in a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    message: str
    hint: str = ""
    harmless: bool = False  # a run goes on


def compare(
    spec: PipelineSpec,
    spark: SparkSession,
    checkpoint: Checkpoint,
    *,
    again: bool,
    warn: Callable[[str], None] = lambda _: None,
) -> None:
    """PipelineError if a table and the checkpoint disagree; with AGAIN only a warning."""
    for found in findings(spec, spark, checkpoint):
        if found.harmless:
            warn(found.message)
        elif again:
            warn(f"{found.message}; going on, because of --again")
        else:
            raise PipelineError(found.message, hint=found.hint)


def findings(spec: PipelineSpec, spark: SparkSession, checkpoint: Checkpoint) -> Iterator[Finding]:
    """What a table and the checkpoint disagree about."""
    if not checkpoint.used or (position := checkpoint.position()) is None:
        return
    for sink in spec.sinks:
        if not isinstance(sink, TableSink):
            continue
        there, numbers = look(sink, spec, spark, checkpoint)
        if there is None:
            if numbers:  # E
                if checkpoint.has_done_any:
                    message = f"{sink.label} does not tell which offsets it has: an earlier version wrote it. It will"
                    yield Finding(message=message, harmless=True)
                continue
            if sink.label not in checkpoint.tables() or not checkpoint.has_done_any:  # G
                continue
        unfinished = checkpoint.unfinished
        if there is not None and unfinished is not None and there.offsets == checkpoint.offsets(unfinished):  # B
            continue
        yield from _compared(sink, checkpoint, position, there)


def look(
    sink: TableSink, spec: PipelineSpec, spark: SparkSession, checkpoint: Checkpoint
) -> tuple[Reached | None, bool]:
    """What the table has by its own words, and whether it has any batch of this checkpoint."""
    batch = Batch(pipeline=spec.name, query=checkpoint.query, number=-1)
    table = make_table(sink, spark)
    return table.reached(batch), table.last(batch) >= 0


def missing(position: Offsets, there: Reached | None, begun: Offsets | None) -> list[Portion]:
    """What is before POSITION and not in a table that has reached THERE; BEGUN is where the checkpoint began."""
    has = there.offsets if there is not None else {}
    return list(_between(has, position, begun or {}))


def _compared(sink: TableSink, checkpoint: Checkpoint, position: Offsets, there: Reached | None) -> Iterator[Finding]:
    begun = checkpoint.begun() or {}
    less = missing(position, there, begun)
    more = list(_between(position, there.offsets, begun)) if there is not None else []
    parts = []
    if less:
        parts.append(f"lacks {_listed(less)}, which the checkpoint {checkpoint.path} has noted as written")
    if more:
        parts.append(f"has {_listed(more)}, which the checkpoint {checkpoint.path} has not noted")
    if parts and there is not None and (others := _other_ids(there.ids, checkpoint.topic_ids())):
        parts.append(f"and has them of an earlier topic {', '.join(others)} of the same name")
    if parts:
        yield Finding(message=f"{sink.label} {'; it '.join(parts)}", hint=_hint(less, more, there))


def _hint(less: list[Portion], more: list[Portion], there: Reached | None) -> str:
    if more and there is not None:
        return (
            "was the checkpoint restored from a backup? These rows would be written twice. To go on behind them: put "
            "the newer checkpoint back; or move this one away and run once with --again and "
            f"[source] start = {_as_start(there.offsets)}; to write them again: run with --again"
        )
    where = ", ".join(sorted({one.topic for one in less}))
    return (
        "was the table deleted, or restored from a backup? To read these records again into this table alone: ixion "
        f"pipeline backfill FILE --missing (if {where} still has them); to build it anew: move the checkpoint and all "
        "tables of the pipeline away and run; to go on without them: run with --again"
    )


def _as_start(offsets: Offsets) -> str:
    """OFFSETS as a pipeline file has them: { orders = { 0 = 50 } }."""
    topics = []
    for topic, partitions in sorted(offsets.items()):
        name = topic if "." not in topic else f'"{topic}"'
        parts = ", ".join(f"{number} = {offset}" for number, offset in sorted(partitions.items(), key=_number))
        topics.append(f"{name} = {{ {parts} }}")
    return f"{{ {', '.join(topics)} }}"


def _between(low: Offsets, high: Offsets, begun: Offsets) -> Iterator[Portion]:
    """The offsets that are before HIGH and not before LOW; a partition that LOW lacks begins at BEGUN."""
    for topic in sorted(high):
        for partition, end in sorted(high[topic].items(), key=_number):
            first = low.get(topic, {}).get(partition)
            if first is None:
                first = begun.get(topic, {}).get(partition, 0)
            if first < end:
                yield Portion(topic, int(partition), first, end)


def _other_ids(there: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    return [topic for topic, name in sorted(there.items()) if known.get(topic, name) != name]


def _number(item: tuple[str, int]) -> int:
    return int(item[0])


def _listed(portions: list[Portion]) -> str:
    words = [f"offsets {one.first} to {one.end - 1} of {one.topic}-{one.partition}" for one in portions[:SHOWN]]
    more = [f"more of {len(portions) - SHOWN} other partitions"] if len(portions) > SHOWN else []
    return " and ".join([*words, *more])
