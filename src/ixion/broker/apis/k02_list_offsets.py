"""ListOffsets, 1 to 11: the offset at a time, or at an end of the log.

-1 latest (the high watermark, or the last stable offset at read_committed), -2 earliest, -3 the record with the
largest timestamp (version 7, KIP-734), -4 the earliest on this disk (8), -5 the last in remote storage (9), -6 the
first not yet there (11). We have no remote storage, so -4 is -2, and -5 and -6 find nothing. A time finds the first
record at or after it that the client can read. Version 4 brought leader epochs; 5 an error for a leader that does not
know its high watermark yet, in place of an end that may be too low or of "none"; 10 a timeout for remote reads, which
is not needed here. A partition that is named twice gets INVALID_REQUEST. With replica id -2, followers respond too;
tools that compare replicas use it. Every id but -1 gets the end of the log as the latest offset, as in Kafka; but no id
finds a record by time that is not due yet.

A search for a time that must inflate a large batch is done on a worker thread, and the response is sent later.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Final, NamedTuple, cast

from ixion.broker.acl.numbers import DESCRIBE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_TOPIC, on_topics
from ixion.broker.apis.owner import owner_of
from ixion.broker.apis.repeats import once, twice
from ixion.broker.apis.services import Services
from ixion.broker.log.checked_batch import IN_PLACE_LIMITS
from ixion.broker.log.log import UNKNOWN, Log
from ixion.broker.log.timestamps import TimedOffset, search_by_timestamp, search_max_timestamp, search_thoroughly
from ixion.broker.log.view import Bound, limit_of
from ixion.broker.replica.fair_workers import Work
from ixion.broker.replica.fetch import DEBUGGER
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import NO_LOG
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ixion.language.records.compression import DEFAULT_LIMITS, InflateLimits
from ixion.language.records.faults import LongWorkError
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

REPEATS: Final = {"topics": once("name", partitions=twice("partition_index"))}
RIGHTS: Final = on_topics(
    DESCRIBE,
    lambda wish: ListOffsetsPartitionResponse(partition_index=wish.partition_index, error_code=NO_TOPIC),
    lambda topic, lines: ListOffsetsTopicResponse(name=topic.name, partitions=lines),
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING: Final = -6
# The first version that has each of the special times.
_SINCE: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}
OFFSET_NOT_AVAILABLE_SINCE: Final = 5
READ_COMMITTED: Final = 1
CONSUMER: Final = -1


def make(services: Services) -> Handle:
    replicas = services.replicas

    def handle(call: Call) -> Steps[ListOffsetsResponse | Later]:
        request = cast(ListOffsetsRequest, call.body)
        if request.replica_id != CONSUMER:
            bound = Bound.END
        elif request.isolation_level == READ_COMMITTED:
            bound = Bound.VISIBLE_STABLE
        else:
            bound = Bound.VISIBLE
        leader_only = request.replica_id != DEBUGGER
        topics: list[tuple[str, dict[int, ListOffsetsPartitionResponse]]] = []
        long: list[Long] = []
        for topic in request.topics:
            times = Counter(wish.partition_index for wish in topic.partitions)
            found: dict[int, ListOffsetsPartitionResponse] = {}
            for wish in topic.partitions:
                number = wish.partition_index
                if times[number] > 1:
                    found[number] = failed(wish, ErrorCode.INVALID_REQUEST)
                else:
                    lookup = look_up(replicas, topic.name, wish, bound, call.version, leader_only)
                    try:
                        found[number] = yield from lookup
                    except LongWorkError:
                        found[number] = failed(wish, ErrorCode.REQUEST_TIMED_OUT)  # until it is found
                        long.append(Long(found, topic.name, wish))
                yield
            topics.append((topic.name, found))
        if not long:
            return respond(topics)
        begin_long(replicas, call, long, bound, leader_only, topics)
        return LATER

    return handle


class Long(NamedTuple):
    """A search for a worker thread, and the responses among which its own will be."""

    found: dict[int, ListOffsetsPartitionResponse]
    topic: str
    wish: ListOffsetsPartition


def respond(topics: list[tuple[str, dict[int, ListOffsetsPartitionResponse]]]) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple([ListOffsetsTopicResponse(name=name, partitions=tuple(found.values())) for name, found in topics])
    )


def begin_long(
    replicas: ReplicaManager,
    call: Call,
    long: list[Long],
    bound: Bound,
    leader_only: bool,
    topics: list[tuple[str, dict[int, ListOffsetsPartitionResponse]]],
) -> None:
    """Search on a worker thread, one partition after the other; then respond."""
    each = long.pop()
    partition = replicas.partition(each.topic, each.wish.partition_index)

    def searched(result: TimedOffset | None, error: Exception | None, used_ns: int) -> None:
        call.spend(used_ns)
        call.request.on_gone(None)
        wish, code = each.wish, ErrorCode.NONE
        if partition is None or isinstance(error, KafkaError):
            code = (
                error.code if isinstance(error, KafkaError) else replicas.why_missing(each.topic, wish.partition_index)
            )
        elif error is not None:
            call.request.fail(error)
            return
        else:
            code = partition.fault(wish.current_leader_epoch, leader_only)
        if code != ErrorCode.NONE or partition is None:
            each.found[wish.partition_index] = failed(wish, code)
        else:
            try:
                facts = facts_of(partition, result, bound)
                each.found[wish.partition_index] = succeeded(wish, facts, call.version)
            except KafkaError as refusal:
                each.found[wish.partition_index] = failed(wish, code_in(call.version, refusal))
        if long:
            begin_long(replicas, call, long, bound, leader_only, topics)
        else:
            call.respond(respond(topics))

    if partition is None:
        searched(None, None, 0)
        return
    search = partial(search_thoroughly, search_of(partition.log, each.wish.timestamp, bound, DEFAULT_LIMITS))
    work = Work(owner_of(call), 0, search, searched)
    replicas.fair_workers.submit(work)
    call.on_gone(partial(replicas.fair_workers.drop, work))


def look_up(
    replicas: ReplicaManager,
    topic: str,
    wish: ListOffsetsPartition,
    bound: Bound,
    version: int,
    leader_only: bool,
) -> Steps[ListOffsetsPartitionResponse]:
    if wish.timestamp < EARLIEST and version < _SINCE.get(wish.timestamp, 1 << 15):
        return failed(wish, ErrorCode.UNSUPPORTED_VERSION)
    partition = replicas.partition(topic, wish.partition_index)
    if partition is None and not leader_only:
        return end_of_log(replicas, topic, wish)
    if partition is None:
        return failed(wish, replicas.why_missing(topic, wish.partition_index))
    fault = partition.fault(wish.current_leader_epoch, leader_only)
    if fault != ErrorCode.NONE:
        return failed(wish, fault)
    try:
        timestamp, offset, epoch = yield from find(partition, wish.timestamp, bound)
    except KafkaError as error:
        return failed(wish, code_in(version, error))
    if wish.timestamp == LATEST and not leader_only:
        epoch = partition.log.epochs.latest  # the last epoch in the log; the leader may have a later one
    return succeeded(wish, (timestamp, offset, epoch), version)


def code_in(version: int, error: KafkaError) -> ErrorCode:
    if error.code == ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_SINCE:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return error.code


def succeeded(wish: ListOffsetsPartition, found: tuple[int, int, int], version: int) -> ListOffsetsPartitionResponse:
    timestamp, offset, epoch = found
    return ListOffsetsPartitionResponse(
        partition_index=wish.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=epoch if version >= 4 else -1,
    )


def end_of_log(replicas: ReplicaManager, topic: str, wish: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
    """The end of a log that has no role yet, because this broker has just started: a controller asks for it before it
    elects a leader."""
    end = replicas.end_of_log(topic, wish.partition_index)
    if end is None:
        return failed(wish, ErrorCode.KAFKA_STORAGE_ERROR)
    if end == NO_LOG or wish.timestamp != LATEST:
        return failed(wish, replicas.why_missing(topic, wish.partition_index))
    return ListOffsetsPartitionResponse(
        partition_index=wish.partition_index,
        error_code=ErrorCode.NONE,
        timestamp=-1,
        offset=end[1],
        leader_epoch=end[0],
    )


def find(partition: Partition, timestamp: int, bound: Bound) -> Steps[tuple[int, int, int]]:
    """(timestamp, offset, leader epoch); -1 for an unknown value."""
    log = partition.log
    if timestamp == LATEST:
        check_known(partition, bound)
        return -1, limit_of(log, bound), partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start, log.epochs.epoch_of(log.log_start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return -1, -1, -1
    found = yield from search_of(log, timestamp, bound, IN_PLACE_LIMITS)
    return facts_of(partition, found, bound)


def search_of(log: Log, timestamp: int, bound: Bound, limits: InflateLimits) -> Steps[TimedOffset | None]:
    if timestamp == MAX_TIMESTAMP:
        return search_max_timestamp(log, bound, limits)
    return search_by_timestamp(log, timestamp, bound, limits)


def facts_of(partition: Partition, found: TimedOffset | None, bound: Bound) -> tuple[int, int, int]:
    if found is None or found.offset >= partition.log.visible_end:  # no replica id finds what is not due yet
        check_known(partition, bound)  # "none" makes clients skip to the end
        return -1, -1, -1
    return found.timestamp, found.offset, found.leader_epoch


def check_known(partition: Partition, bound: Bound) -> None:
    """OFFSET_NOT_AVAILABLE to a consumer while this leader does not know how far consumers may read."""
    log = partition.log
    if bound != Bound.END and (log.high_watermark < partition.epoch_start or log.visible_end == UNKNOWN):
        # A new leader: the high watermark of its predecessor may have been higher than the one it knows.
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"the high watermark of {log.name} is not known yet")


def failed(wish: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wish.partition_index, error_code=code)
