"""The metadata of a cluster: its brokers, its topics and the leader of each partition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ixion.clients.address import Address
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k03_metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

# Tuples, not dataclasses: creating a dataclass costs half a millisecond of every start.


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Node(NamedTuple):
    """A broker."""

    node_id: int
    address: Address
    rack: str | None


class Partition(NamedTuple):
    number: int
    leader: int  # node id, -1 while there is none
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    internal: bool
    partitions: tuple[Partition, ...]  # by number


class ClusterMetadata(NamedTuple):
    cluster_id: str | None
    controller: int  # node id; -1: not known
    nodes: dict[int, Node]
    topics: dict[str, Topic]
    faults: dict[str, ErrorCode]  # the error of each topic that the broker did not describe


def read_metadata(answer: MetadataResponse) -> ClusterMetadata:
    nodes = {
        broker.node_id: Node(broker.node_id, Address(broker.host, broker.port), broker.rack)
        for broker in answer.brokers
    }
    topics: dict[str, Topic] = {}
    faults: dict[str, ErrorCode] = {}
    for topic in answer.topics:
        name = topic.name or ""
        read = read_topic(name, topic)
        if topic.error_code != 0:
            faults[name] = error_code(topic.error_code)
        elif not read.partitions or any(place != each.number for place, each in enumerate(read.partitions)):
            faults[name] = ErrorCode.UNKNOWN_SERVER_ERROR  # a broker must not answer that
        else:
            topics[name] = read
    return ClusterMetadata(answer.cluster_id, answer.controller_id, nodes, topics, faults)


def read_topic(name: str, topic: MetadataResponseTopic) -> Topic:
    partitions = sorted(map(read_partition, topic.partitions))
    return Topic(name, topic.topic_id, topic.is_internal, tuple(partitions))


def read_partition(found: MetadataResponsePartition) -> Partition:
    return Partition(
        found.partition_index,
        found.leader_id,
        found.leader_epoch,
        found.replica_nodes,
        found.isr_nodes,
        found.offline_replicas,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
