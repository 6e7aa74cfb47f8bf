"""A fetch that waits until there is enough to read.

It is over when, for one of its partitions,

- A: this broker no longer leads it (or, for a read at a follower, no longer has it),
- B: the broker does not know it, or its disk has failed,
- C: the leader epoch that the client knows is not the one of now,
- D: the end has moved to another segment than the one that the client reads, or the log was truncated below it,
- E: its history is another one than the client's (diverging epoch),

or, over all of them, F: at least min_bytes can be read. Then it reads again, and answers with what there is; so it does
when its time is up. Followers are woken by each append, consumers by the high watermark, and those at read_committed
by the last stable offset, because that is how far each of them may read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion.log.reader import Isolation, limit_of
from ixion.model.errors import ErrorCode
from ixion.purgatory.operation import DelayedOperation
from ixion.replica.fetch_result import FetchResult

if TYPE_CHECKING:
    from ixion.replica.manager import ReplicaManager


class DelayedFetch(DelayedOperation):
    def __init__(
        self,
        replicas: ReplicaManager,
        wait_ms: int,
        min_bytes: int,
        isolation: Isolation,
        leader_only: bool,
        seen: list[FetchResult],
        finish: Callable[[], None],
    ) -> None:
        super().__init__(wait_ms)
        self._replicas = replicas
        self._min_bytes = min_bytes
        self._isolation = isolation
        self._leader_only = leader_only
        self._seen = seen
        self._finish = finish

    def try_complete(self) -> bool:
        readable = 0
        for seen in self._seen:
            wish = seen.wish
            partition = self._replicas.partitions.get(wish.key)
            if partition is None or partition.log.home.offline:
                return self.force_complete()  # B
            if partition.fault(wish.leader_epoch, self._leader_only) != ErrorCode.NONE:
                return self.force_complete()  # A, C
            log = partition.log
            limit = limit_of(log, self._isolation)
            if limit < wish.offset or log.log_start > wish.offset:
                return self.force_complete()  # D: truncated, or deleted, under the reader
            if limit > wish.offset:
                active = log.segments.active
                if seen.segment_base >= 0 and seen.segment_base != active.base_offset:
                    return self.force_complete()  # D
                readable += min(self._bytes_after(seen, active.size), wish.max_bytes)
        return readable >= self._min_bytes and self.force_complete()  # F

    def _bytes_after(self, seen: FetchResult, end_position: int) -> int:
        """How many bytes have come since the first look. Exact for the log's end, which only grows."""
        if seen.position < 0:
            # At the first look there was nothing to read: any batch counts, and most fetches ask for one byte.
            return self._min_bytes if self._min_bytes <= 1 else self._bytes_from(seen)
        return end_position - seen.position

    def _bytes_from(self, seen: FetchResult) -> int:
        wish = seen.wish
        partition = self._replicas.partitions[wish.key]
        segment = partition.log.segments.active
        place = segment.locate(wish.offset)
        if place is None:
            return 0
        limit = limit_of(partition.log, self._isolation)
        beyond = segment.locate(limit) if limit < partition.log.end_offset else None
        return (segment.size if beyond is None else beyond.position) - place.position

    def on_complete(self) -> None:
        self._finish()
