"""Reads for a fetch, partition after partition, within the limits of the request.

The first partition that has anything gives at least one whole batch, however large: so a reader always gets on. After
that each gives what fits into its own limit and into what is left of the request's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.log.reader import Isolation, read_slice
from ixion.model.errors import ErrorCode, KafkaError
from ixion.replica.fetch_result import FetchResult, FetchWish

if TYPE_CHECKING:
    from ixion.replica.manager import ReplicaManager


def read_all(
    replicas: ReplicaManager,
    wishes: list[FetchWish],
    max_bytes: int,
    isolation: Isolation,
    leader_only: bool,
    hard_limit: bool,
) -> list[FetchResult]:
    results: list[FetchResult] = []
    left = max_bytes
    min_one = not hard_limit
    for wish in wishes:
        result = FetchResult(wish)
        read_one(replicas, result, left, isolation, leader_only, min_one)
        size = len(result.records)
        if size:
            min_one = False
            left = max(0, left - size)
        results.append(result)
    return results


def read_one(
    replicas: ReplicaManager, result: FetchResult, left: int, isolation: Isolation, leader_only: bool, min_one: bool
) -> None:
    wish = result.wish
    partition = replicas.partitions.get(wish.key)
    if partition is None:
        result.code = replicas.why_missing(wish.topic, wish.number)
        return
    if wish.topic_id and partition.topic_id != wish.topic_id:
        result.code = ErrorCode.INCONSISTENT_TOPIC_ID
        return
    fault = partition.fault(wish.leader_epoch, leader_only)
    if fault != ErrorCode.NONE:
        result.code = fault
        return
    log = partition.log
    result.high_watermark = log.high_watermark
    result.last_stable_offset = log.last_stable_offset
    result.log_start = log.log_start
    result.end_offset = log.end_offset
    if wish.last_epoch >= 0:
        epoch, end = log.epoch_end_offset(wish.last_epoch)
        if epoch < 0 or end < 0:
            result.code = ErrorCode.OFFSET_OUT_OF_RANGE
            return
        if epoch < wish.last_epoch or end < wish.offset:
            result.diverging_epoch = epoch
            result.diverging_end = end
            return
    try:
        data = read_slice(log, wish.offset, min(left, wish.max_bytes), isolation, min_one)
    except KafkaError as error:
        if partition.log is log:
            result.code = error.code
        else:  # it has moved to another directory in this very moment
            read_one(replicas, result, left, isolation, leader_only, min_one)
        return
    result.records = data.records
    result.aborted = data.aborted
    result.segment_base = data.segment_base
    result.position = data.position
