"""Compares topic, checkpoint and tables, partition by partition, and changes nothing: `ixion pipeline doctor`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.run.agreement import Finding, findings, look
from ixion.pipelines.source.lost_records import Topic
from ixion.pipelines.source.topics import find_topics
from ixion.pipelines.spec import PipelineSpec
from ixion.pipelines.spec.sinks import TableSink


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One partition. All but `first` are the offset of the next record; None if there is none."""

    topic: str
    partition: int
    first: int | None  # in the topic
    end: int | None
    checkpoint: int | None
    tables: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    places: tuple[Place, ...]
    findings: tuple[Finding, ...]


def examine(spec: PipelineSpec, spark: SparkSession, checkpoint: Checkpoint) -> Diagnosis:
    found: list[Finding] = []
    topics: dict[str, Topic] = {}
    for known in (checkpoint, None):  # without it, losses are no error
        try:
            topics = find_topics(spark, spec.source, known)
            break
        except PipelineError as error:
            found.append(Finding(message=str(error), hint=error.hint))
    try:
        position = checkpoint.position() or {} if checkpoint.used else {}
        found += findings(spec, spark, checkpoint)
        tables = {
            sink.label: there.offsets if (there := look(sink, spec, spark, checkpoint)[0]) else {}
            for sink in spec.sinks
            if isinstance(sink, TableSink) and checkpoint.used
        }
    except PipelineError as error:
        found.append(Finding(message=str(error), hint=error.hint))
        position, tables = {}, {}
    unlike = {(one.message, one.hint): one for one in found}
    return Diagnosis(places=tuple(_places(topics, position, tables)), findings=tuple(unlike.values()))


def _places(
    topics: Mapping[str, Topic],
    position: Mapping[str, Mapping[str, int]],
    tables: Mapping[str, Mapping[str, Mapping[str, int]]],
) -> Iterator[Place]:
    known = {name: topic.end for name, topic in topics.items()}
    everywhere = (known, position, *tables.values())
    for topic in sorted({topic for offsets in everywhere for topic in offsets}):
        partitions = {partition for offsets in everywhere for partition in offsets.get(topic, {})}
        for partition in sorted(partitions, key=int):
            yield Place(
                topic=topic,
                partition=int(partition),
                first=topics[topic].first.get(partition) if topic in topics else None,
                end=known.get(topic, {}).get(partition),
                checkpoint=position.get(topic, {}).get(partition),
                tables={label: offsets.get(topic, {}).get(partition) for label, offsets in tables.items()},
            )
