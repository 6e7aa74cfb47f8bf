"""A fetch that waits until there is enough to read.

It completes when, for one of its partitions,

- A: this broker no longer leads it,
- B: this broker no longer has a replica of it (for a read that any replica may serve),
- C: this broker does not know it,
- D: its log directory is offline,
- E: the leader epoch that the client knows is not the current one,
- F: the end is in another segment than the client's offset: the log was rolled, truncated or deleted,
- H: the log has diverged from the client's,

or, over all of them, G: at least min_bytes can be read. (The letters are those of Kafka's DelayedFetch.) It also
completes at its timeout. Then it reads again, and answers with what it finds. Each append wakes followers, the high
watermark wakes consumers, and the last stable offset wakes consumers at read_committed, because that is how far each of
them may read.

An event is about one partition, so only that partition is checked: the bytes of the others are remembered. A waiting
fetch of a thousand partitions costs an append no more than a fetch of one.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from ixion.broker.log.log import Log
from ixion.broker.log.view import Bound, limit_of
from ixion.broker.replica.results import FetchResult
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.purgatory.operation import DelayedOperation, abandon

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.replica.partition import Partition


class DelayedFetch(DelayedOperation):
    def __init__(
        self,
        replicas: ReplicaManager,
        wait_ms: int,
        min_bytes: int,
        bound: Bound,
        leader_only: bool,
        seen: list[FetchResult],
        finish: Callable[[], None],
    ) -> None:
        super().__init__(wait_ms)
        self._replicas = replicas
        self._min_bytes = min_bytes
        self._bound = bound
        self._leader_only = leader_only
        self._seen = {result.wish.key: result for result in seen}
        self._readable = 0  # bytes over all partitions, at the last check of each
        self.copies_to = -1  # the broker id of a follower
        self._finish = finish

    @property
    def keys(self) -> list[TopicPartition]:
        return list(self._seen)

    def try_complete(self) -> bool:
        for seen in self._seen.values():
            if self._look(seen):
                return self.force_complete()
        return self._readable >= self._min_bytes and self.force_complete()  # G

    def try_complete_for(self, key: Hashable) -> bool:
        seen = self._seen.get(key)  # type: ignore[call-overload]
        if seen is None:
            return self.try_complete()
        if self._look(seen):
            return self.force_complete()
        return self._readable >= self._min_bytes and self.force_complete()  # G

    def _look(self, seen: FetchResult) -> bool:
        """Whether an event of the partition ends the wait. Counts its readable bytes."""
        self._replicas.counters.fetch_checks += 1
        wish = seen.wish
        partition = self._replicas.partitions.get(wish.key)
        if partition is None or partition.log.directory.offline:
            return True  # B, C, D
        if partition.fault(wish.leader_epoch, self._leader_only) != ErrorCode.NONE:
            return True  # A, E
        log = partition.log
        limit = limit_of(log, self._bound)
        if (limit < wish.offset and limit != log.visible_end) or log.log_start > wish.offset:
            return True  # F: truncated or deleted below the client's offset
        if wish.last_epoch >= 0:
            epoch, end = log.epoch_end_offset(wish.last_epoch)
            if epoch < wish.last_epoch or end < wish.offset:
                return True  # H
        readable = 0
        if limit > wish.offset and not self._is_throttled(partition):
            if wish.offset < log.segments.active.base_offset:
                return True  # F
            readable = min(self._bytes_until(limit, seen, log), wish.max_bytes)
        self._readable += readable - seen.readable
        seen.readable = readable
        return False

    def _is_throttled(self, partition: Partition) -> bool:
        """Whether a quota keeps the partition from this follower, so that its records end no wait."""
        if not partition.throttled_as_leader or self.copies_to < 0 or self.copies_to in partition.isr:
            return False
        quota = self._replicas.leader_quota
        return quota is not None and quota.is_exceeded()

    def _bytes_until(self, limit: int, seen: FetchResult, log: Log) -> int:
        """Bytes of the last segment between the client's offset and `limit`."""
        if self._min_bytes <= 1:
            return 1  # min_bytes is 1, as in most fetches, and there is a batch
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

    def waits_for(self) -> str:
        names = list(self._seen)
        first = f"{names[0][0]}-{names[0][1]}" if names else "nothing"
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        reader = f"for broker {self.copies_to}: " if self.copies_to >= 0 else ""
        return f"{reader}{self._readable:,} of {self._min_bytes:,} bytes of {first}{more}"

    def on_complete(self) -> None:
        self._replicas.completions.run(self._finish)

    def give_up(self) -> None:
        """Stop waiting: the client is gone."""
        if abandon(self):
            self._seen = {}
            self._finish = ignore


def ignore() -> None:
    """Replaces the answer when the client is gone."""
