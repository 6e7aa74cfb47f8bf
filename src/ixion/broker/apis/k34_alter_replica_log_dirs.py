"""AlterReplicaLogDirs, 1 to 2: move partitions to other log directories of this broker (KIP-113).

The response is sent when the moves have begun; DescribeLogDirs shows their progress. Writes and reads go on meanwhile.
A partition that does not exist yet gets UNKNOWN_TOPIC_OR_PARTITION, as in Kafka, but the broker remembers the directory
until it stops, and creates the partition there.

The log in which delayed records of a partition wait moves with it, and not alone (POLICY_VIOLATION).
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import ALTER
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.replica.manager import ReplicaManager
from ixion.language.model.delay_names import is_sibling
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_name import is_topic_name
from ixion.language.protocol.messages.k34_alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, map_steps

REPEATS: Final = {"dirs": once("path", topics=once("name", partitions=NUMBERS))}


def make(services: Services) -> Handle:
    replicas = services.replicas

    def handle(call: Call) -> Steps[AlterReplicaLogDirsResponse]:
        request = cast(AlterReplicaLogDirsRequest, call.body)
        topics: dict[str, dict[int, ErrorCode]] = {}
        for place in request.dirs:
            for topic in place.topics:
                codes = topics.setdefault(topic.name, {})
                for number in topic.partitions:
                    codes[number] = move(replicas, topic.name, number, place.path)
                    yield
                yield
        results: list[AlterReplicaLogDirTopicResult] = []
        for name, codes in topics.items():
            partitions = yield from map_steps(partition_result, codes.items())
            results.append(AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(partitions)))
            yield
        return AlterReplicaLogDirsResponse(results=tuple(results))

    return handle


def partition_result(moved: tuple[int, ErrorCode]) -> AlterReplicaLogDirPartitionResult:
    number, code = moved
    return AlterReplicaLogDirPartitionResult(partition_index=number, error_code=code)


def move(replicas: ReplicaManager, topic: str, number: int, path: str) -> ErrorCode:
    logs = replicas.logs
    directory = next((each for each in logs.directories if each.path == path), None)
    if directory is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if is_sibling(topic):
        return ErrorCode.POLICY_VIOLATION
    partition = replicas.partition(topic, number)
    if directory.state.offline or (partition is None and (topic, number) in replicas.offline):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition is None:
        if is_topic_name(topic):
            logs.prefer(topic, number, directory)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    replicas.moves.begin(partition, directory)
    return ErrorCode.NONE


def _refused_moves(request: AlterReplicaLogDirsRequest, _version: int) -> Steps[Struct]:
    numbers: dict[str, dict[int, None]] = {}
    for place in request.dirs:
        for topic in place.topics:
            numbers.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions))
            yield
    results: list[AlterReplicaLogDirTopicResult] = []
    for name, partitions in numbers.items():
        lines = yield from map_steps(
            lambda number: AlterReplicaLogDirPartitionResult(partition_index=number, error_code=NO_CLUSTER), partitions
        )
        results.append(AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(lines)))
    return AlterReplicaLogDirsResponse(results=tuple(results))


RIGHTS: Final = in_cluster(ALTER, _refused_moves)
