"""What a newly elected controller does first: it reads the tree, finishes deletions, and elects missing leaders."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ixion.controller.election import Elected, elect
from ixion.controller.leader_rules import elect_leader, without_leader
from ixion.controller.local_broker import LocalBroker
from ixion.controller.topic_nodes import (
    operations_to_add,
    operations_to_change_state,
    operations_to_delete,
    read_topic,
    topic_node,
)
from ixion.metadata import paths
from ixion.metadata.ensure import ensure
from ixion.metadata.image import PartitionImage, TopicImage
from ixion.metadata.node import Operation, Set
from ixion.metadata.session import MetadataSession
from ixion.metadata.topic_node import encode_topic
from ixion.model.ids import new_id


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    elected: Elected
    topics: list[TopicImage]
    changes: int  # nodes that had to be written


def take_over(
    session: MetadataSession, local: LocalBroker, live: Collection[int], now_ms: int, unclean: bool
) -> TakenOver:
    """Become the controller and bring the tree in order. Blocks: it is called on the controller's thread.

    `live`: the brokers that are registered. `unclean`: this broker did not stop cleanly, so that every partition gets
    a new leader epoch.
    """
    elected = elect(session, local.node_id, now_ms)
    ensure(session, [paths.DELETE_TOPICS])
    doomed = session.children(paths.DELETE_TOPICS)
    local.delete_logs(frozenset(doomed))
    for name in doomed:
        session.multi(operations_to_delete(session, name))
    topics: list[TopicImage] = []
    operations: list[Operation] = []
    for name in session.children(paths.TOPICS):
        found = read_topic(session, name)
        if found is None:
            continue
        topic, missing = found
        if not topic.topic_id:
            topic.topic_id = new_id()
            operations.append(Set(paths.topic(name), encode_topic(topic_node(topic))))
        for number, partition in enumerate(topic.partitions):
            if partition.leader in live and not unclean:
                continue
            after = topic.partitions[number] = with_leader_if_any(partition, live)
            if number in missing:
                operations += operations_to_add(name, after, elected.epoch)
            elif after is not partition:
                operations.append(operations_to_change_state(name, after, elected.epoch))
        topics.append(topic)
    if operations:
        session.multi(operations)
    local.set_strays_aside(topics)
    return TakenOver(elected=elected, topics=topics, changes=len(operations))


def with_leader_if_any(partition: PartitionImage, live: Collection[int]) -> PartitionImage:
    """The partition with a new leader, or without one if no replica can lead it."""
    after = elect_leader(partition, live)
    if after is not None:
        return after
    if partition.leader < 0:
        return partition
    return without_leader(partition, tuple(broker for broker in partition.replicas if broker not in live))
