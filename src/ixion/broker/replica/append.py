"""Append records to partitions that this broker leads, and answer as `acks` asks.

acks=0 and acks=1 are answered after the append. acks=all waits for the high watermark. With one replica the high
watermark moves at once, and no delayed operation is made.

A request may have very many partitions, so several are appended in turns of the loop. A batch that takes long to
validate was checked before, perhaps on a worker thread (`replica.checking`). The connection is not read meanwhile, so
no later request overtakes.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.log.checked_batch import CheckedBatch
from ixion.broker.log.prepare import AppendInfo, Origin
from ixion.broker.replica.delayed_produce import DelayedProduce, outcome
from ixion.broker.replica.results import AppendResult
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.layout import Buffer
from ixion.language.records.validate import InvalidRecords
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.replica.partition import Partition

logger = logging.getLogger(__name__)

Entry = tuple[str, int, Buffer]
GiveUp = Callable[[], None]  # stops the wait: the client is gone

NONE_CHECKED: Final[dict[TopicPartition, CheckedBatch]] = {}
AT_ONCE: Final = 128  # partitions that begin to wait in one turn
# Refusals that name no log start offset, as in Kafka. With every other code a producer looks at it: only then does it
# know that its earlier records were deleted, and may go on with another sequence number.
WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


def append(
    replicas: ReplicaManager,
    timeout_ms: int,
    acks: int,
    origin: Origin,
    entries: Sequence[Entry],
    done: Callable[[list[AppendResult]], None],
    waits: Callable[[GiveUp], None] | None = None,
    checked: Mapping[TopicPartition, CheckedBatch] = NONE_CHECKED,
) -> None:
    """`done` is called once with a result per entry, in their order, perhaps before this returns.

    `waits` is called if all is appended and some results are still open, with a function that stops the wait. From then
    on nothing here keeps records. `checked` has the batches that were checked before.
    """
    settling = Settling(replicas, timeout_ms, acks, done, waits)
    if len(entries) != 1:
        several = SeveralAppends(settling, origin, entries, checked)
        replicas.append_lane.begin(several.steps(), several.finish)
        return
    topic, number, records = entries[0]
    result = AppendResult(topic, number)
    append_one(replicas, result, records, acks, origin, checked.get((topic, number)) if checked else None)
    settling.add(result)
    settling.finish()


class SeveralAppends:
    """An append to several partitions, in turns.

    It drops the records of a partition as soon as they are appended. Compiled generators and inner functions are part
    of reference cycles, so their variables live until the next garbage collection. That is why they hold no records
    here.
    """

    def __init__(
        self,
        settling: Settling,
        origin: Origin,
        entries: Sequence[Entry],
        checked: Mapping[TopicPartition, CheckedBatch],
    ) -> None:
        self._settling = settling
        self._origin = origin
        self._left: deque[Entry] = deque(entries)
        self._checked = dict(checked)
        self._appended: deque[AppendResult] = deque()

    def steps(self) -> Steps[None]:
        while self._left:
            self._append_next()
            yield
        while self._appended:
            self._settling.add(self._appended.popleft())
            yield

    def _append_next(self) -> None:
        topic, number, records = self._left[0]
        result = AppendResult(topic, number)
        checked = self._checked.pop((topic, number), None)
        append_one(self._settling.replicas, result, records, self._settling.acks, self._origin, checked)
        self._appended.append(result)
        self._left.popleft()

    def finish(self, _: None, error: Exception | None) -> None:
        if error is not None:
            logger.error("an append to several partitions failed", exc_info=error)
            for result in self._appended:
                self._settling.add(result)
            for topic, number, _records in self._left:
                result = AppendResult(topic, number)
                result.code = ErrorCode.UNKNOWN_SERVER_ERROR
                self._settling.add(result)
            self._left.clear()
        self._settling.finish()


class Settling:
    """Appends whose results are collected, and waited for if `acks` needs that."""

    def __init__(
        self,
        replicas: ReplicaManager,
        timeout_ms: int,
        acks: int,
        done: Callable[[list[AppendResult]], None],
        waits: Callable[[GiveUp], None] | None,
    ) -> None:
        self.replicas = replicas
        self.acks = acks
        self._timeout_ms = timeout_ms
        self._results: list[AppendResult] = []
        self._done = done
        self._waits = waits
        self._operation: DelayedProduce | None = None  # waits for results that are still open

    def add(self, result: AppendResult) -> None:
        self._results.append(result)
        if result.code == ErrorCode.NONE and (self.acks == -1 or result.must_flush):
            code = outcome(result, self.acks)
            if code is not None:
                result.code = code
                return
            if self._operation is None:
                self._operation = DelayedProduce(self._timeout_ms, self.acks, self._results, self._completed)
            self._operation.wait_for(result)

    def finish(self) -> None:
        """All results are added: answer, or wait for the open ones."""
        operation, self._operation = self._operation, None  # it refers to this object: avoid a reference cycle
        if operation is None:
            self._done(self._results)
            return
        purgatory, waits, keys = self.replicas.produce_purgatory, self._waits, operation.keys
        if len(keys) > AT_ONCE:
            if waits is not None:
                waits(operation.give_up)
            self.replicas.append_lane.run(purgatory.watch_in_steps(operation, keys), partial(watched, operation))
        elif not purgatory.try_complete_else_watch(operation, keys) and waits is not None:
            waits(operation.give_up)

    def _completed(self, results: list[AppendResult]) -> None:
        self.replicas.completions.run(partial(self._done, results))


def watched(operation: DelayedProduce, _: bool | None, error: Exception | None) -> None:
    if error is not None:
        logger.error("an append to %d partitions cannot wait", len(operation.results), exc_info=error)
        operation.force_complete()


def append_one(
    replicas: ReplicaManager,
    result: AppendResult,
    records: Buffer,
    acks: int,
    origin: Origin,
    checked: CheckedBatch | None,
) -> None:
    partition = replicas.partitions.get((result.topic, result.number))
    if partition is None:
        result.code = replicas.why_missing(result.topic, result.number)
        return
    result.partition = partition
    try:
        schedule = partition.schedule
        if schedule is None:
            info = partition.append(records, acks, origin, checked)
        else:
            info = schedule.append(records, acks, origin, checked)
    except InvalidRecords as refusal:
        result.code = refusal.code
        result.message = refusal.message
        result.record_errors = tuple([(each.batch_index, each.message) for each in refusal.record_errors])
        result.log_start = partition.log.log_start
        return
    except KafkaError as error:
        result.code = error.code
        result.message = error.message
        if error.code not in WITHOUT_LOG_START:
            result.log_start = partition.log.log_start
        return
    except Exception:  # as in Kafka: the other partitions go on, and the client gets an answer
        logger.exception("an append to %s failed", partition.log.name)
        result.code = ErrorCode.UNKNOWN_SERVER_ERROR
        result.log_start = partition.log.log_start
        return
    result.first_offset = info.first_offset
    result.append_time = info.append_time
    result.log_start = info.log_start_offset
    result.required = info.last_offset + 1
    result.must_flush = info.flush_due
    appended(replicas, partition, info)


def appended(replicas: ReplicaManager, partition: Partition, info: AppendInfo) -> None:
    """After every append: count it, flush if that is due, and move the high watermark."""
    replicas.counters.messages_in += info.records
    replicas.counters.bytes_in += info.size
    if info.flush_due:
        replicas.flush_soon(partition)
    if info.rolled:
        replicas.flush_sealed_soon(partition)
    if partition.log.config.delivery_delay_ms:
        replicas.delays.appended(partition)
    if partition.advance_high_watermark():
        replicas.high_watermark_moved(partition)
    elif info.size:
        replicas.appended(partition)
