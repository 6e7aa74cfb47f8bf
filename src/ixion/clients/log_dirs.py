"""The log directories of brokers: how full each is, and how much of that is which partition."""

from __future__ import annotations

from typing import NamedTuple

from ixion.clients.cluster import Cluster
from ixion.clients.deadline import Deadline
from ixion.clients.faults import check, error_code
from ixion.clients.metadata import TopicPartition
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ixion.protocol.registry import ApiKey


class Replica(NamedTuple):
    """A partition in a directory. A future replica is being moved there."""

    partition: TopicPartition
    size: int
    lag: int
    is_future: bool


class LogDirectory(NamedTuple):
    broker: int
    path: str
    error: ErrorCode  # NONE if the directory works
    total: int | None  # bytes of the volume; None if the broker is too old to say
    free: int | None
    replicas: tuple[Replica, ...]


def describe_log_dirs(cluster: Cluster) -> list[LogDirectory]:
    """Those of all brokers."""

    def ask(within: Deadline) -> list[LogDirectory]:
        found = []
        for node in cluster.nodes(within):
            request = DescribeLogDirsRequest(topics=None)
            broker = cluster.node(node.node_id, within)
            answer = broker.call(ApiKey.DESCRIBE_LOG_DIRS, request, DescribeLogDirsResponse, within)
            check(answer.error_code, None, f"the log directories of broker {node.node_id}")
            for each in answer.results:
                replicas = tuple(
                    Replica(
                        TopicPartition(topic.name, part.partition_index),
                        part.partition_size,
                        part.offset_lag,
                        part.is_future_key,
                    )
                    for topic in each.topics
                    for part in topic.partitions
                )
                found.append(
                    LogDirectory(
                        node.node_id,
                        each.log_dir,
                        error_code(each.error_code),
                        each.total_bytes if each.total_bytes >= 0 else None,
                        each.usable_bytes if each.usable_bytes >= 0 else None,
                        replicas,
                    )
                )
        return sorted(found)

    return cluster.attempt("describing log directories", ask)
