"""A produce with acks=all that waits until every in-sync replica has its records.

It completes when, for each of its partitions,

- A: this broker no longer leads it (NOT_LEADER_OR_FOLLOWER; KAFKA_STORAGE_ERROR if its disk failed),
- B: the high watermark has reached the end of the append, and enough replicas are in sync (NONE) or no longer enough
  (NOT_ENOUGH_REPLICAS_AFTER_APPEND),
- C: on a topic with flush.messages, the append is on the disk, for any acks.

An event is about one partition, and only that one is checked. Partitions that failed to append wait for nothing. Each
partition is preset to REQUEST_TIMED_OUT, which remains if the timeout comes first.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import cast

from ixion.broker.replica.results import AppendResult
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.purgatory.operation import DelayedOperation, abandon


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
        """Add an open result. All results are added before the operation is watched."""
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
        """Check the results of a partition. One that the request names twice waits for its last append."""
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

    def waits_for(self) -> str:
        for (topic, number), waiting in self._waiting.items():
            more = f", and {len(self._waiting) - 1:,} more partitions" if len(self._waiting) > 1 else ""
            return f"{topic}-{number}: {lack(waiting[-1])}{more}"
        return ""

    def on_complete(self) -> None:
        self._done(self.results)

    def give_up(self) -> None:
        """Stop waiting: the client is gone. The records stay."""
        if abandon(self):
            self.results = []
            self._waiting = {}
            self._done = ignore


def lack(result: AppendResult) -> str:
    """What an open append still lacks, for people who look."""
    partition = result.partition
    if partition is None:
        return "nothing"
    if result.must_flush and partition.log.recovery_point < result.required:
        return f"the disk has {partition.log.recovery_point:,} of {result.required:,}"
    behind: list[str] = []
    for broker in partition.isr:
        follower = partition.followers.get(broker)
        if follower is not None and follower.end_offset < result.required:
            behind.append(f"broker {broker} has {max(follower.end_offset, 0):,} of {result.required:,}")
    if behind:
        return ", ".join(behind)
    return f"the high watermark is {partition.log.high_watermark:,} of {result.required:,}"


def ignore(_results: list[AppendResult]) -> None:
    """Replaces the answer when the client is gone."""


def outcome(result: AppendResult, acks: int) -> ErrorCode | None:
    """The outcome of an append; None if it is still open."""
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
