"""Move replicas to other log directories of the same broker."""

from ixion.language.protocol.notation import Int16, Int32, String, Struct, TopicName


class AlterReplicaLogDirTopic(Struct):
    name: TopicName
    partitions: tuple[Int32, ...]


class AlterReplicaLogDir(Struct):
    path: String
    topics: tuple[AlterReplicaLogDirTopic, ...]


class AlterReplicaLogDirsRequest(Struct):
    dirs: tuple[AlterReplicaLogDir, ...]


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: Int32
    error_code: Int16


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: TopicName
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...]


class AlterReplicaLogDirsResponse(Struct):
    throttle_time_ms: Int32 = 0
    results: tuple[AlterReplicaLogDirTopicResult, ...]
