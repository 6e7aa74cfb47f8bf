"""Reads for a fetch, partition by partition, within the limits of the request.

The first partition with data returns at least one whole batch of any size, so every fetch makes progress. The following
ones return what fits into their own limit and into the rest of the request's.

A follower that reads from an offset has everything below it, which may move the high watermark. A broker without a
replica of the partition gets UNKNOWN_LEADER_EPOCH if it names the leader's epoch (this leader does not know yet that
the replica was added, and the broker retries), else NOT_LEADER_OR_FOLLOWER.

A consumer that names its rack may read from followers, and `selecting` sends it to one. A follower outside the ISR gets
no records while a quota is exceeded (`replication_quota`), but its progress is still noted.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion._native import mypyc_attr
from ixion.broker.log.log import Log
from ixion.broker.log.reader import FetchSlice, read_slice
from ixion.broker.log.view import Bound
from ixion.broker.replica.results import FetchResult, FetchWish
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.replica.partition import Partition


@mypyc_attr(allow_interpreted_subclasses=False)
class LogReader:
    """The reads of one fetch. `results` has one entry per wish, in their order."""

    def __init__(
        self,
        replicas: ReplicaManager,
        max_bytes: int,
        bound: Bound,
        leader_only: bool,
        follower: int,
        follower_epoch: int,
    ) -> None:
        self._replicas = replicas
        self._bound = bound
        self._leader_only = leader_only
        self._follower = follower  # the broker id of a follower whose progress is noted; -1: no follower
        self._follower_epoch = follower_epoch
        self.copies_to = -1  # the broker id of a follower, even if its progress is not noted
        self.rack = ""  # of a consumer that may be sent to another replica
        self._left = max_bytes
        self._min_one = True
        self.results: list[FetchResult] = []

    def read_all(self, wishes: list[FetchWish]) -> list[FetchResult]:
        for wish in wishes:
            self.read(wish)
        return self.results

    def steps(self, wishes: list[FetchWish]) -> Steps[list[FetchResult]]:
        """As `read_all`, in steps, for many partitions."""
        for wish in wishes:
            self.read(wish)
            yield
        return self.results

    def read(self, wish: FetchWish) -> None:
        result = FetchResult(wish)
        self._read(result)
        size = len(result.records)
        if size:
            self._min_one = False
            self._left = max(0, self._left - size)
        self.results.append(result)

    def _read(self, result: FetchResult) -> None:
        wish = result.wish
        replicas = self._replicas
        partition = replicas.partitions.get(wish.key)
        if partition is None:
            result.code = replicas.why_missing(wish.topic, wish.number)
            return
        if wish.topic_id and partition.topic_id != wish.topic_id:
            result.code = ErrorCode.INCONSISTENT_TOPIC_ID
            return
        fault = partition.fault(wish.leader_epoch, self._leader_only)
        if fault != ErrorCode.NONE:
            result.code = fault
            return
        follower = self._follower
        if follower >= 0 and follower not in partition.followers:
            named = wish.leader_epoch >= 0
            result.code = ErrorCode.UNKNOWN_LEADER_EPOCH if named else ErrorCode.NOT_LEADER_OR_FOLLOWER
            return
        log = partition.log
        # Consumers do not see records that are not due yet (`delivery_delay`).
        barrier = max(log.visible_end, log.log_start) if self._bound != Bound.END else log.end_offset
        result.high_watermark = min(log.high_watermark, barrier)
        result.last_stable_offset = min(log.last_stable_offset, barrier)
        result.log_start = log.log_start
        if partition.covers is not None and self._bound == Bound.END:
            # For a follower of a sibling: how far its notes go, and where the sibling ends (`siblings`).
            result.high_watermark = partition.covers.log.end_offset
            result.last_stable_offset = log.end_offset
        if wish.last_epoch >= 0:
            epoch, end = log.epoch_end_offset(wish.last_epoch)
            if epoch < 0 or end < 0:
                result.code = ErrorCode.OFFSET_OUT_OF_RANGE
                return
            if epoch < wish.last_epoch or end < wish.offset:
                result.diverging_epoch = epoch
                result.diverging_end = end
                return
        if self.rack and replicas.selector is not None and partition.leads:
            result.preferred_replica = replicas.selector.select(partition, self.rack, wish.offset)
            if result.preferred_replica >= 0:
                return
        if partition.throttled_as_leader and self.copies_to >= 0 and self.copies_to not in partition.isr:
            result.throttled = True
            quota = replicas.leader_quota
            if wish.offset <= log.end_offset and quota is not None and quota.is_exceeded():
                self._note(partition, wish)
                return
        try:
            data = read_slice(log, wish.offset, min(self._left, wish.max_bytes), self._bound, self._min_one)
        except KafkaError as error:
            if partition.log is log:
                result.code = error.code
            else:  # the log is just moving to another directory
                self._read(result)
            return
        if partition.covers is not None and has_no_more(log, wish.offset, data):
            result.last_stable_offset = wish.offset  # its last notes were truncated: the follower has all others
        result.records = data.records
        result.aborted = data.aborted
        result.segment_base = data.segment_base
        result.position = data.position
        self._note(partition, wish)

    def _note(self, partition: Partition, wish: FetchWish) -> None:
        """Note that the follower has everything below the offset of its wish."""
        follower = self._follower
        if follower >= 0 and partition.follower_fetched(follower, wish.offset, wish.log_start, self._follower_epoch):
            self._replicas.high_watermark_moved(partition)


def has_no_more(log: Log, offset: int, data: FetchSlice) -> bool:
    """Whether a log has no batch from `offset` on although its end is further. (An empty read may have other reasons,
    such as a full answer.)"""
    if len(data.records) or offset >= log.end_offset:
        return False
    return not len(read_slice(log, offset, 1, Bound.END).records)
