"""Checks the topics and brokers before anything is read: do they exist, and are they the same as before?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import SparkSession

from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.source.broker import SourceBroker
from ixion.pipelines.source.lost_records import Topic, refuse_losses, refuse_start
from ixion.pipelines.spec.sinks import Sink, TopicSink
from ixion.pipelines.spec.source import SourceSpec


def find_topics(
    spark: SparkSession, source: SourceSpec, checkpoint: Checkpoint | None = None, *, create: bool = False
) -> dict[str, Topic]:
    """The topics by name. A missing one is an error, unless the file has create_missing: then it is created, or without
    CREATE left out.

    Records that were lost since the last run with CHECKPOINT are an error too, unless the file allows it.
    """
    position = checkpoint.position() if checkpoint else None
    with SourceBroker(spark, source.bootstrap, source.options) as broker:
        names = broker.topics()
        if position is not None and not source.loss_allowed:  # before a deleted one is created again
            refuse_losses({topic: read for topic, read in position.items() if topic not in names}, {}, {})
        missing = [topic for topic in source.topics if topic not in names] if source.create_missing else []
        for topic in missing if create else ():
            broker.create(topic)
        there = tuple(topic for topic in source.topics if create or topic not in missing)
        found = broker.look_at(broker.matching(replace(source, topics=there)))
    if checkpoint is None or source.loss_allowed:
        return found
    if position is not None:
        refuse_losses(position, checkpoint.topic_ids(), found)
    else:
        refuse_start(source.start.offsets, found)
    return found


def need_sink_brokers(spark: SparkSession, sinks: Iterable[Sink]) -> None:
    """Raises if the broker of a topic sink does not answer, or refuses us."""
    for number, sink in enumerate(sinks):
        if isinstance(sink, TopicSink):
            with SourceBroker(spark, sink.bootstrap, sink.options, f"sinks[{number + 1}].options") as broker:
                broker.topics()
