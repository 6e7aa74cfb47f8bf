"""DescribeLogDirs, 1 to 5: the log directories, their partitions and their free space.

The request may list partitions; null means all. A partition that is being moved is listed twice: in its current
directory, and in the new one (`is_future_key`) with its lag in records. Version 3 brought an error for the whole
response (never set here), 4 the size of the disks (KIP-827), 5 cordoned directories, of which there are none.
"""

from __future__ import annotations

import os
from typing import Final, cast

from ixion.broker.acl.numbers import DESCRIBE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.log.directory import LogDirectory
from ixion.broker.log.log import Log
from ixion.broker.log.manager import LogManager
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k35_describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ixion.timer.turns import Steps

REPEATS: Final = {"topics": once("topic", partitions=NUMBERS)}
RIGHTS: Final = refused_with(DESCRIBE, DescribeLogDirsResponse(error_code=NO_CLUSTER, results=()))


def make(services: Services) -> Handle:
    logs = services.replicas.logs

    def handle(call: Call) -> Steps[DescribeLogDirsResponse]:
        request = cast(DescribeLogDirsRequest, call.body)
        wanted: set[TopicPartition] | None = None if request.topics is None else set()
        for topic in request.topics or ():
            assert wanted is not None
            for number in topic.partitions:
                wanted.add((topic.topic, number))
                yield
            yield
        results = []
        for directory in logs.directories:
            result = yield from describe(logs, directory, wanted)
            results.append(result)
        return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=tuple(results))

    return handle


def describe(
    logs: LogManager, directory: LogDirectory, wanted: set[TopicPartition] | None
) -> Steps[DescribeLogDirsResult]:
    try:
        room = None if directory.state.offline else os.statvfs(directory.path)
    except OSError:
        room = None
    if room is None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=())
    topics: dict[str, list[DescribeLogDirsPartition]] = {}

    def add(log: Log, lag: int, *, future: bool) -> None:
        key = (log.topic, log.partition)
        if log.directory is directory.state and (wanted is None or key in wanted):
            topics.setdefault(log.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=log.partition, partition_size=log.size, offset_lag=lag, is_future_key=future
                )
            )

    for log in list(logs.logs.values()):
        add(log, max(log.high_watermark - log.end_offset, 0), future=False)
        yield
    for log in list(logs.future_logs.values()):
        current = logs.get(log.topic, log.partition)
        add(log, -1 if current is None else current.end_offset - log.end_offset, future=True)
        yield
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=tuple(
            DescribeLogDirsTopic(name=name, partitions=tuple(partitions)) for name, partitions in topics.items()
        ),
        total_bytes=room.f_blocks * room.f_frsize,
        usable_bytes=room.f_bavail * room.f_frsize,
    )
