"""A fetch: read now if there is enough, else wait for more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion._native import mypyc_attr
from ixion.log.reader import Isolation
from ixion.model.errors import ErrorCode
from ixion.replica.delayed_fetch import DelayedFetch
from ixion.replica.fetch_result import FetchResult, FetchWish
from ixion.replica.read import read_all

if TYPE_CHECKING:
    from ixion.replica.manager import ReplicaManager


@mypyc_attr(allow_interpreted_subclasses=False)
class FetchTerms:
    """What a fetch says about all of its partitions."""

    def __init__(
        self, *, replica_id: int, max_wait_ms: int, min_bytes: int, max_bytes: int, isolation: Isolation
    ) -> None:
        self.replica_id = replica_id  # a follower's broker id; -1: a consumer
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation = isolation

    @property
    def from_follower(self) -> bool:
        return self.replica_id >= 0


def fetch(
    replicas: ReplicaManager,
    terms: FetchTerms,
    wishes: list[FetchWish],
    done: Callable[[list[FetchResult]], None],
    waits: Callable[[Callable[[], None]], None] | None = None,
) -> None:
    """`done` is called once with a result per wish, in their order, perhaps before this returns.

    `waits` is called if the fetch has to wait for more, with the way to stop waiting.
    """
    leader_only = True
    results = read_all(replicas, wishes, terms.max_bytes, terms.isolation, leader_only, False)
    if terms.from_follower:
        note_progress(replicas, terms.replica_id, results)
    if terms.max_wait_ms <= 0 or not wishes or enough(results, terms.min_bytes):
        done(results)
        return

    def finish() -> None:
        done(read_all(replicas, wishes, terms.max_bytes, terms.isolation, leader_only, False))

    operation = DelayedFetch(
        replicas, terms.max_wait_ms, terms.min_bytes, terms.isolation, leader_only, results, finish
    )
    for result in results:
        result.records = b""  # it is read again when the wait is over
    if not replicas.fetch.try_complete_else_watch(operation, [wish.key for wish in wishes]) and waits is not None:
        waits(operation.give_up)


def enough(results: list[FetchResult], min_bytes: int) -> bool:
    """Whether there is nothing to wait for: enough bytes, or something that the client must hear at once."""
    size = 0
    for result in results:
        if result.code != ErrorCode.NONE or result.diverging_epoch >= 0 or result.preferred_replica >= 0:
            return True
        size += len(result.records)
    return size >= min_bytes


def note_progress(replicas: ReplicaManager, broker_id: int, results: list[FetchResult]) -> None:
    """A follower that fetches from an offset has everything below it."""
    for result in results:
        if result.code == ErrorCode.NONE and result.diverging_epoch < 0:
            partition = replicas.partitions[result.wish.key]
            if broker_id not in partition.followers:
                result.code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                result.records = b""
            elif partition.follower_fetched(broker_id, result.wish.offset, result.wish.log_start):
                replicas.high_watermark_moved(partition)
