"""Append records to partitions that this broker leads, and answer when they are as safe as was asked for.

acks=0 and acks=1 are answered after the append. acks=all waits for the high watermark: with one replica that is there
at once, and the operation that would wait is not even made.

A request may bring very many partitions, and compressed batches take their time to be looked into (the worst that is
accepted, some 40 ms). So several partitions are appended in turns of the loop; the connection is not read meanwhile, so
nothing overtakes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ixion.log.prepare import Origin
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.layout import Buffer
from ixion.records.validate import InvalidRecords
from ixion.replica.append_result import AppendResult
from ixion.replica.delayed_produce import DelayedProduce, outcome
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.replica.manager import ReplicaManager

logger = logging.getLogger(__name__)

Entry = tuple[str, int, Buffer]
GiveUp = Callable[[], None]  # nobody wants the answer any more


def append(
    replicas: ReplicaManager,
    timeout_ms: int,
    acks: int,
    origin: Origin,
    entries: Sequence[Entry],
    done: Callable[[list[AppendResult]], None],
    waits: Callable[[GiveUp], None] | None = None,
) -> None:
    """`done` is called once with a result per entry, in their order, perhaps before this returns.

    `waits` is called if all is appended and the results are not known yet, with the way to stop waiting for them. From
    then on nothing here keeps records.
    """
    if len(entries) != 1:
        several = SeveralAppends(replicas, timeout_ms, acks, origin, entries, done, waits)
        replicas.in_turns(several.steps(), several.finish)
        return
    topic, number, records = entries[0]
    result = AppendResult(topic, number)
    append_one(replicas, result, records, acks, origin)
    settle(replicas, timeout_ms, acks, [result], done, waits)


class SeveralAppends:
    """An append to several partitions, in turns.

    It drops the records of a partition as soon as they are appended. Compiled generators and inner functions are part
    of reference cycles, so what their variables hold stays until the next collection: they hold no records here.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        timeout_ms: int,
        acks: int,
        origin: Origin,
        entries: Sequence[Entry],
        done: Callable[[list[AppendResult]], None],
        waits: Callable[[GiveUp], None] | None,
    ) -> None:
        self._replicas = replicas
        self._timeout_ms = timeout_ms
        self._acks = acks
        self._origin = origin
        self._left: deque[Entry] = deque(entries)
        self._results: list[AppendResult] = []
        self._done = done
        self._waits = waits

    def steps(self) -> Steps[None]:
        while self._left:
            self._append_next()
            yield

    def _append_next(self) -> None:
        topic, number, records = self._left[0]
        result = AppendResult(topic, number)
        append_one(self._replicas, result, records, self._acks, self._origin)
        self._results.append(result)
        self._left.popleft()

    def finish(self, _: None, error: Exception | None) -> None:
        results = self._results
        if error is not None:
            logger.error("an append to %d partitions failed", len(results) + len(self._left), exc_info=error)
            for topic, number, _records in self._left:
                result = AppendResult(topic, number)
                result.code = ErrorCode.UNKNOWN_SERVER_ERROR
                results.append(result)
            self._left.clear()
        settle(self._replicas, self._timeout_ms, self._acks, results, self._done, self._waits)


def settle(
    replicas: ReplicaManager,
    timeout_ms: int,
    acks: int,
    results: list[AppendResult],
    done: Callable[[list[AppendResult]], None],
    waits: Callable[[GiveUp], None] | None,
) -> None:
    """All is appended: answer, or wait until it is as safe as it should be."""
    open_ones = False
    for result in results:
        if result.code == ErrorCode.NONE and (acks == -1 or result.must_flush):
            code = outcome(result, acks)
            if code is None:
                open_ones = True
            else:
                result.code = code
    if not open_ones:
        done(results)
        return

    def finish(finished: list[AppendResult]) -> None:
        replicas.completions.run(partial(done, finished))

    operation = DelayedProduce(timeout_ms, acks, results, finish)
    if not replicas.produce.try_complete_else_watch(operation, operation.keys) and waits is not None:
        waits(operation.give_up)


def append_one(replicas: ReplicaManager, result: AppendResult, records: Buffer, acks: int, origin: Origin) -> None:
    partition = replicas.partitions.get((result.topic, result.number))
    if partition is None:
        result.code = replicas.why_missing(result.topic, result.number)
        return
    result.partition = partition
    try:
        info = partition.append(records, acks, origin)
    except InvalidRecords as refusal:
        result.code = refusal.code
        result.message = refusal.message
        result.record_errors = tuple([(each.batch_index, each.message) for each in refusal.record_errors])
        result.log_start = partition.log.log_start
        return
    except KafkaError as error:
        result.code = error.code
        result.message = error.message
        if error.code in (ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_RECORD):
            result.log_start = partition.log.log_start
        return
    except Exception:  # as Kafka does: the other partitions, and those who wait for an answer, are not at fault
        logger.exception("an append to %s failed", partition.log.name)
        result.code = ErrorCode.UNKNOWN_SERVER_ERROR
        return
    result.first_offset = info.first_offset
    result.append_time = info.append_time
    result.log_start = info.log_start_offset
    result.required = info.last_offset + 1
    replicas.counters.messages_in += info.records
    replicas.counters.bytes_in += info.size
    if info.flush_due:
        result.must_flush = True
        replicas.flush_soon(partition)
    if info.rolled:
        replicas.flush_sealed_soon(partition)
    if partition.advance_high_watermark():
        replicas.high_watermark_moved(partition)
    elif info.size:
        replicas.appended(partition)
