"""A produce with acks=all that waits until every in-sync replica has its records.

It is over, for each of its partitions, when

- A: this broker does not lead the partition any more (NOT_LEADER_OR_FOLLOWER; KAFKA_STORAGE_ERROR if it lost the disk),
- B: the high watermark has reached the end of what was appended, and there are enough replicas in sync (no error) or
  no longer enough (NOT_ENOUGH_REPLICAS_AFTER_APPEND),
- C: on a topic with flush.messages, what was appended is on the disk, whatever acks says.

An event is about one partition, and only that one is looked at. Partitions that failed to append wait for nothing.
Until its condition holds each partition is preset to REQUEST_TIMED_OUT, which is what is left when the time is up.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import cast

from ixion.model.errors import ErrorCode
from ixion.model.topic_partition import TopicPartition
from ixion.purgatory.operation import DelayedOperation, abandon
from ixion.replica.results import AppendResult


class DelayedProduce(DelayedOperation):
    def __init__(
        self, timeout_ms: int, acks: int, results: list[AppendResult], done: Callable[[list[AppendResult]], None]
    ) -> None:
        super().__init__(timeout_ms)
        self.acks = acks
        self.results = results
        self._done = done
        self._waiting: dict[TopicPartition, list[AppendResult]] = {}

    def wait_for(self, result: AppendResult) -> None:
        """One of the results is open; all of these are added before the operation is watched."""
        result.waits = True
        result.code = ErrorCode.REQUEST_TIMED_OUT
        self._waiting.setdefault((result.topic, result.number), []).append(result)

    @property
    def keys(self) -> list[TopicPartition]:
        return list(self._waiting)

    def try_complete(self) -> bool:
        for key in self.keys:
            self._look(key)
        return not self._waiting and self.force_complete()

    def try_complete_for(self, key: Hashable) -> bool:
        self._look(cast(TopicPartition, key))
        return not self._waiting and self.force_complete()

    def _look(self, key: TopicPartition) -> None:
        """A partition that is named twice waits in one place for its last append."""
        waiting = self._waiting.get(key)
        if waiting is None:
            return
        still: list[AppendResult] = []
        for result in waiting:
            code = outcome(result, self.acks)
            if code is None:
                still.append(result)
            else:
                result.waits = False
                result.code = code
        if still:
            self._waiting[key] = still
        else:
            del self._waiting[key]

    def on_complete(self) -> None:
        self._done(self.results)

    def give_up(self) -> None:
        """Nobody wants the answer any more. What was appended stays."""
        if abandon(self):
            self.results = []
            self._waiting = {}
            self._done = ignore


def ignore(_results: list[AppendResult]) -> None:
    """In place of an answer that is no longer wanted."""


def outcome(result: AppendResult, acks: int) -> ErrorCode | None:
    """What became of an append; None if that is still open."""
    partition = result.partition
    if partition is None:
        return result.code
    if not partition.leads:
        return partition.lost  # A
    log = partition.log
    if result.must_flush and log.recovery_point < result.required:
        return None
    if acks != -1:
        return ErrorCode.NONE  # C
    if log.high_watermark < result.required:
        return None
    return ErrorCode.NONE if partition.enough_in_sync else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND  # B
