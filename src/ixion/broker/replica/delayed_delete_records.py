"""A deletion of records that waits until every replica has moved its log start.

It completes when, for each partition, A: this broker no longer leads it, or B: its low watermark has reached the
offset.
"""

from __future__ import annotations

from collections.abc import Callable

from ixion.broker.replica.partition import Partition
from ixion.language.model.errors import ErrorCode
from ixion.purgatory.operation import DelayedOperation


class DeletionResult:
    def __init__(self, topic: str, number: int) -> None:
        self.topic = topic
        self.number = number
        self.partition: Partition | None = None
        self.code = ErrorCode.NONE
        self.required = -1
        self.low_watermark = -1
        self.waits = False


class DelayedDeleteRecords(DelayedOperation):
    def __init__(
        self, timeout_ms: int, results: list[DeletionResult], done: Callable[[list[DeletionResult]], None]
    ) -> None:
        super().__init__(timeout_ms)
        self._results = results
        self._done = done
        for result in results:
            if result.code == ErrorCode.NONE:
                result.waits = True
                result.code = ErrorCode.REQUEST_TIMED_OUT

    def try_complete(self) -> bool:
        waiting = False
        for result in self._results:
            if result.waits:
                partition = result.partition
                assert partition is not None
                if not partition.leads:
                    result.waits = False
                    result.code = partition.lost  # A
                elif partition.low_watermark >= result.required:
                    result.waits = False
                    result.code = ErrorCode.NONE  # B
                    result.low_watermark = partition.low_watermark
                else:
                    waiting = True
        return not waiting and self.force_complete()

    def waits_for(self) -> str:
        for each in self._results:
            if each.waits and each.partition is not None:
                return f"{each.topic}-{each.number}: every replica begins at {each.required:,}"
        return ""

    def on_complete(self) -> None:
        self._done(self._results)
