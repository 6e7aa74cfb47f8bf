"""Makes, lists, enlarges and deletes topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final

from ixion.clients.cluster import Cluster
from ixion.clients.deadline import Deadline
from ixion.clients.faults import UnknownTopicError, check
from ixion.clients.metadata import ClusterMetadata, Topic
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import ZERO_ID
from ixion.protocol.messages.k19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ixion.protocol.messages.k20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from ixion.protocol.messages.k37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from ixion.protocol.registry import ApiKey

BROKER_DECIDES: Final = -1  # as partition count or replication factor: the broker's own default


def list_topics(cluster: Cluster) -> list[Topic]:
    """All of them, by name."""
    found = cluster.attempt("listing topics", lambda within: cluster.metadata(None, within))
    return sorted(found.topics.values())


def create_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = BROKER_DECIDES,
    replication: int = BROKER_DECIDES,
    configs: Mapping[str, str] | None = None,
    assignment: Sequence[Sequence[int]] = (),
    validate_only: bool = False,
) -> Topic | None:
    """Make a topic and wait until every partition has a leader; None if it was only to be validated.

    `assignment` names the replicas of each partition, leader first, and stands in for both numbers.
    """
    replicas = tuple(
        CreatableReplicaAssignment(partition_index=index, broker_ids=tuple(brokers))
        for index, brokers in enumerate(assignment)
    )
    topic = CreatableTopic(
        name=name,
        num_partitions=BROKER_DECIDES if replicas else partitions,
        replication_factor=BROKER_DECIDES if replicas else replication,
        assignments=replicas,
        configs=tuple(CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()),
    )

    lost = Lost()

    def ask(within: Deadline) -> None:
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=within.left_ms, validate_only=validate_only)
        broker = cluster.controller(within)
        with lost:
            answer = broker.call(ApiKey.CREATE_TOPICS, request, CreateTopicsResponse, within)
        for result in answer.topics:
            if not (lost.answers and result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS):
                check(result.error_code, result.error_message, f"topic {name!r}")

    cluster.attempt(f"creating {name!r}", ask)
    if validate_only:
        return None
    return wait_for(cluster, name, lambda found: name in found.topics and has_leaders(found.topics[name])).topics[name]


def delete_topic(cluster: Cluster, name: str) -> None:
    """Delete a topic and wait until it is gone."""

    lost = Lost()

    def ask(within: Deadline) -> None:
        broker = cluster.controller(within)
        version = broker.version(ApiKey.DELETE_TOPICS)
        request = DeleteTopicsRequest(
            topics=(DeleteTopicState(name=name, topic_id=ZERO_ID),) if version >= 6 else (),
            topic_names=(name,),
            timeout_ms=within.left_ms,
        )
        with lost:
            answer = broker.call(ApiKey.DELETE_TOPICS, request, DeleteTopicsResponse, within, version)
        for result in answer.responses:
            if result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                if lost.answers:
                    return
                raise UnknownTopicError(name, list(cluster.metadata(None, within).topics))
            check(result.error_code, result.error_message, f"topic {name!r}")

    cluster.attempt(f"deleting {name!r}", ask)
    cluster.forget()
    wait_for(cluster, name, lambda found: name not in found.topics)


def add_partitions(cluster: Cluster, name: str, total: int) -> Topic:
    """Give a topic so many partitions in all and wait until they have leaders."""

    def ask(within: Deadline) -> None:
        topic = CreatePartitionsTopic(name=name, count=total, assignments=None)
        request = CreatePartitionsRequest(topics=(topic,), timeout_ms=within.left_ms, validate_only=False)
        broker = cluster.controller(within)
        answer = broker.call(ApiKey.CREATE_PARTITIONS, request, CreatePartitionsResponse, within)
        for result in answer.results:
            check(result.error_code, result.error_message, f"topic {name!r}")

    cluster.topic(name)  # an unknown one is said with the nearest name
    cluster.attempt(f"adding partitions to {name!r}", ask)

    def has_grown(found: ClusterMetadata) -> bool:
        topic = found.topics.get(name)
        return topic is not None and len(topic.partitions) >= total and has_leaders(topic)

    return wait_for(cluster, name, has_grown).topics[name]


class Lost:
    """Counts answers that never came. What was asked then may have been done: a second time it is done already."""

    def __init__(self) -> None:
        self.answers = 0

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.answers += error is not None


def has_leaders(topic: Topic) -> bool:
    return all(partition.leader >= 0 for partition in topic.partitions)


def wait_for(cluster: Cluster, name: str, wanted: Callable[[ClusterMetadata], bool]) -> ClusterMetadata:
    """A change that the controller has acknowledged reaches the broker that we ask a moment later."""

    def look(within: Deadline) -> ClusterMetadata:
        found = cluster.metadata([name], within)
        if not wanted(found):
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "the change is not seen everywhere yet")
        return found

    return cluster.attempt(f"waiting for the change of {name!r}", look)
