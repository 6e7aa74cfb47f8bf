"""Append records to partitions that this broker leads, and answer when they are as safe as was asked for.

acks=0 and acks=1 are answered after the append. acks=all waits for the high watermark: with one replica that is there
at once, and the operation that would wait is not even made.

A request may bring very many partitions, and compressed batches take their time to be looked into (the worst that is
accepted, some 40 ms). So after `SLICE_NS` the loop has its turn before the rest is appended; the connection is not read
meanwhile, so nothing overtakes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from ixion.log.append import Origin
from ixion.model.errors import ErrorCode, KafkaError
from ixion.records.layout import Buffer
from ixion.records.validate import InvalidRecords
from ixion.replica.append_result import AppendResult
from ixion.replica.delayed_produce import DelayedProduce, outcome

if TYPE_CHECKING:
    from ixion.replica.manager import ReplicaManager

Entry = tuple[str, int, Buffer]
GiveUp = Callable[[], None]  # nobody wants the answer any more
SLICE_NS: Final = 10_000_000


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
    append_some(replicas, timeout_ms, acks, origin, entries, [], done, waits)


def append_some(
    replicas: ReplicaManager,
    timeout_ms: int,
    acks: int,
    origin: Origin,
    entries: Sequence[Entry],
    results: list[AppendResult],
    done: Callable[[list[AppendResult]], None],
    waits: Callable[[GiveUp], None] | None,
) -> None:
    """A slice, the first or a later one."""
    begun = perf_counter_ns() if len(entries) > 1 else 0
    for place, (topic, number, records) in enumerate(entries):
        if place and perf_counter_ns() - begun > SLICE_NS:
            replicas.soon(
                partial(append_some, replicas, timeout_ms, acks, origin, entries[place:], results, done, waits)
            )
            return
        result = AppendResult(topic, number)
        results.append(result)
        append_one(replicas, result, records, acks, origin)
    settle(replicas, timeout_ms, acks, results, done, waits)


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
    operation = DelayedProduce(timeout_ms, acks, results, done)
    keys = [(result.topic, result.number) for result in results if result.waits]
    if not replicas.produce.try_complete_else_watch(operation, keys) and waits is not None:
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
