"""Checks the ids of the topics in every batch: a topic that was deleted and created again has another id.

Spark does not notice this. It continues at the offset that it had reached in the old topic, and never reads the new
topic's records before that offset. So the ids are checked before and after each batch is written: if a topic was
created again in between, the batch is not committed to the checkpoint.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from pyspark.sql import SparkSession

from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.source.broker import SourceBroker
from ixion.pipelines.source.lost_records import refuse_made_anew
from ixion.pipelines.spec.source import SourceSpec


class TopicWatch:
    """One connection to the broker during a run."""

    def __init__(self, spark: SparkSession, source: SourceSpec, checkpoint: Checkpoint) -> None:
        self._checkpoint: Final = checkpoint
        self._known: Final = checkpoint.topic_ids()
        self._allowed: Final = source.loss_allowed
        self._broker: Final = SourceBroker(spark, source.bootstrap, source.options)

    def __enter__(self) -> TopicWatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._broker.__exit__(kind, error, at)

    def look(self, batch: int) -> None:
        """Raises if a topic of BATCH is not the one that was read before. Ids of new topics are remembered."""
        if self._allowed:
            return
        there = self._broker.ids(self._checkpoint.offsets(batch))
        new = {topic: name for topic, name in there.items() if topic not in self._known}
        if there != {topic: self._known.get(topic, name) for topic, name in there.items()}:
            refuse_made_anew(self._checkpoint.position() or {}, self._known, there)
        if new:
            self._checkpoint.remember_topics(new)
            self._known.update(new)
