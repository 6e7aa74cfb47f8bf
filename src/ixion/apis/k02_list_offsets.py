"""ListOffsets, 1 to 11: the offset at a time, or at an end of the log.

-1 latest (the high watermark, or the last stable offset at read_committed), -2 earliest, -3 the record with the
largest timestamp (version 7, KIP-734), -4 the earliest on this disk (8), -5 the last in remote storage (9), -6 the
first not yet there (11). We have no remote storage, so -4 is -2, and -5 and -6 find nothing. A time finds the first
record at or after it that the client can read. Version 4 brought leader epochs; 5 an error for a leader that does not
know its high watermark yet; 10 a timeout for remote reads, which is not needed here. A partition that is named twice
gets INVALID_REQUEST. With replica id -2, followers respond too; tools that compare replicas use it.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.log.reader import Isolation, limit_of
from ixion.log.timestamps import search_by_timestamp, search_max_timestamp
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.topic_partition import NO_LOG
from ixion.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ixion.replica.fetch import DEBUGGER
from ixion.replica.manager import ReplicaManager
from ixion.replica.partition import Partition
from ixion.timer.turns import Steps

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

    def handle(call: Call) -> Steps[ListOffsetsResponse]:
        request = cast(ListOffsetsRequest, call.body)
        if request.replica_id != CONSUMER:
            isolation = Isolation.LOG_END
        elif request.isolation_level == READ_COMMITTED:
            isolation = Isolation.COMMITTED
        else:
            isolation = Isolation.HIGH_WATERMARK
        leader_only = request.replica_id != DEBUGGER
        topics = []
        for topic in request.topics:
            times = Counter(wish.partition_index for wish in topic.partitions)
            found = {}
            for wish in topic.partitions:
                number = wish.partition_index
                if times[number] > 1:
                    found[number] = failed(wish, ErrorCode.INVALID_REQUEST)
                else:
                    found[number] = yield from look_up(replicas, topic.name, wish, isolation, call.version, leader_only)
                yield
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(found.values())))
        return ListOffsetsResponse(topics=tuple(topics))

    return sliced(handle)


def look_up(
    replicas: ReplicaManager,
    topic: str,
    wish: ListOffsetsPartition,
    isolation: Isolation,
    version: int,
    leader_only: bool,
) -> Steps[ListOffsetsPartitionResponse]:
    partition = replicas.partition(topic, wish.partition_index)
    if partition is None and not leader_only:
        return end_of_log(replicas, topic, wish)
    if partition is None:
        return failed(wish, replicas.why_missing(topic, wish.partition_index))
    fault = partition.fault(wish.current_leader_epoch, leader_only)
    if fault != ErrorCode.NONE:
        return failed(wish, fault)
    if wish.timestamp < EARLIEST and version < _SINCE.get(wish.timestamp, 1 << 15):
        return failed(wish, ErrorCode.UNSUPPORTED_VERSION)
    try:
        timestamp, offset, epoch = yield from find(partition, wish.timestamp, isolation)
    except KafkaError as error:
        if error.code == ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_SINCE:
            return failed(wish, ErrorCode.LEADER_NOT_AVAILABLE)
        return failed(wish, error.code)
    if wish.timestamp == LATEST and not leader_only:
        epoch = partition.log.epochs.latest  # the last epoch in the log; the leader may have a later one
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


def find(partition: Partition, timestamp: int, isolation: Isolation) -> Steps[tuple[int, int, int]]:
    """(timestamp, offset, leader epoch); -1 for an unknown value."""
    log = partition.log
    limit = limit_of(log, isolation)
    if timestamp == LATEST:
        if isolation != Isolation.LOG_END and log.high_watermark < partition.epoch_start:
            # A new leader: the high watermark of its predecessor may have been higher than the one it knows.
            raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE, f"the high watermark of {log.name} is not known yet")
        return -1, limit, partition.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.log_start, log.epochs.epoch_of(log.log_start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        return -1, -1, -1
    by_time = search_max_timestamp(log) if timestamp == MAX_TIMESTAMP else search_by_timestamp(log, timestamp)
    found = yield from by_time
    if found is None or found.offset >= limit:
        return -1, -1, -1
    return found.timestamp, found.offset, found.leader_epoch


def failed(wish: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wish.partition_index, error_code=code)
