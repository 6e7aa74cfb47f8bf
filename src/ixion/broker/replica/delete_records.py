"""Deletes the records of partitions below an offset, and waits until every replica has done so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from ixion.broker.log.view import Bound, limit_of
from ixion.broker.replica.delayed_delete_records import DelayedDeleteRecords, DeletionResult
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager

logger = logging.getLogger(__name__)

HIGH_WATERMARK: Final = -1  # as an offset: delete everything that consumers can see


def delete_records(
    replicas: ReplicaManager,
    timeout_ms: int,
    offsets: Sequence[tuple[str, int, int]],
    done: Callable[[list[DeletionResult]], None],
) -> None:
    def finish(_: None, error: Exception | None) -> None:
        if error is not None:
            logger.error("a deletion of records failed", exc_info=error)
        for topic, number, _offset in offsets[len(results) :]:
            result = DeletionResult(topic, number)
            result.code = ErrorCode.UNKNOWN_SERVER_ERROR
            results.append(result)
        operation = DelayedDeleteRecords(timeout_ms, results, done)
        keys = [(result.topic, result.number) for result in results if result.waits]
        if keys:
            replicas.delete_records_purgatory.try_complete_else_watch(operation, keys)
        else:
            operation.force_complete()

    results: list[DeletionResult] = []
    replicas.append_lane.begin(_delete(replicas, offsets, results), finish)


def _delete(
    replicas: ReplicaManager, offsets: Sequence[tuple[str, int, int]], results: list[DeletionResult]
) -> Steps[None]:
    for topic, number, offset in offsets:
        result = DeletionResult(topic, number)
        result.code = _delete_below(replicas, result, offset)
        results.append(result)
        yield


def _delete_below(replicas: ReplicaManager, result: DeletionResult, offset: int) -> ErrorCode:
    partition = replicas.partition(result.topic, result.number)
    if partition is None:
        return replicas.why_missing(result.topic, result.number)
    result.partition = partition
    log = partition.log
    if partition.covers is not None:
        return ErrorCode.POLICY_VIOLATION  # delayed records can only be cancelled
    if not partition.leads:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not log.config.delete and log.config.compact:
        return ErrorCode.POLICY_VIOLATION
    limit = limit_of(log, Bound.VISIBLE)
    if offset == HIGH_WATERMARK:
        offset = limit
    if not 0 <= offset <= limit:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    try:
        log.raise_log_start(offset)
    except KafkaError as error:
        return error.code
    result.required = offset
    replicas.wake_all(partition.key)
    return ErrorCode.NONE
