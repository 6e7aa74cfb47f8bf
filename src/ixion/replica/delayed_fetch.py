"""A fetch that waits until there is enough to read.

It is over when, for one of its partitions,

- A: this broker no longer leads it (or, for a read at a follower, no longer has it),
- B: the broker does not know it, or its disk has failed,
- C: the leader epoch that the client knows is not the one of now,
- D: the end lies in a later segment than the client's offset, or the log was truncated or deleted under it,
- E: its history is another one than the client's (diverging epoch),

or, over all of them, F: at least min_bytes can be read. Then it reads again, and answers with what there is; so it does
when its time is up. Followers are woken by each append, consumers by the high watermark, and those at read_committed
by the last stable offset, because that is how far each of them may read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion.log.log import Log
from ixion.log.reader import Isolation, limit_of
from ixion.model.errors import ErrorCode
from ixion.purgatory.operation import DelayedOperation, abandon
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
                if wish.offset < active.base_offset:
                    return self.force_complete()  # D
                readable += min(self._bytes_until(limit, seen, log), wish.max_bytes)
        return readable >= self._min_bytes and self.force_complete()  # F

    def _bytes_until(self, limit: int, seen: FetchResult, log: Log) -> int:
        """How many bytes of the last segment lie between the reader and how far it may read."""
        if self._min_bytes <= 1:
            return 1  # any batch will do, and there is one: most fetches want no more
        with log.lock:
            segment = log.segments.active
            start = seen.position if seen.segment_base == segment.base_offset else -1
            if start < 0:
                place = segment.locate(seen.wish.offset)
                if place is None:
                    return 0
                start = place.position
            beyond = segment.locate(limit) if limit < log.end_offset else None
            return (segment.size if beyond is None else beyond.position) - start

    def on_complete(self) -> None:
        self._finish()

    def give_up(self) -> None:
        """Nobody wants the answer any more."""
        if abandon(self):
            self._seen = []
            self._finish = ignore


def ignore() -> None:
    """For an answer that nobody wants."""
