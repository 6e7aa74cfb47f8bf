"""The topics of a running pipeline, looked at in every batch: a topic that is deleted and made anew has another id.

Spark does not notice. It goes on at the offset that it had reached in the old topic, and what the new one has before
that offset is never read. So each batch is held against the ids when it begins and again when it is written: if a topic
was made anew in between, its batch is not noted as done.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from pyspark.sql import SparkSession

from ixion.pipelines.broker import SourceBroker
from ixion.pipelines.checkpoint import Checkpoint
from ixion.pipelines.loss import refuse_made_anew
from ixion.pipelines.spec.source import SourceSpec


class TopicWatch:
    """One connection to the broker for the length of a run."""

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
        """Raises if a topic that BATCH reads is not the one that was read before. New ones are remembered."""
        if self._allowed:
            return
        there = self._broker.ids(self._checkpoint.offsets(batch))
        new = {topic: name for topic, name in there.items() if topic not in self._known}
        if there != {topic: self._known.get(topic, name) for topic, name in there.items()}:
            refuse_made_anew(self._checkpoint.position() or {}, self._known, there)
        if new:
            self._checkpoint.remember_topics(new)
            self._known.update(new)
