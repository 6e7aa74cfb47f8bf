"""The first work of a new controller: it reads the tree, finishes deletions, and elects missing leaders."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ixion.broker.controller.election import Elected, OtherControllerError, elect
from ixion.broker.controller.leader_rules import elect_leader, without_leader
from ixion.broker.controller.own_broker import OwnBroker
from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.controller.topic_nodes import (
    operations_to_add,
    operations_to_change_state,
    operations_to_delete,
    read_topic,
    topic_node,
)
from ixion.broker.metadata import paths
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.image import PartitionImage, TopicImage
from ixion.broker.metadata.node import Operation, Set
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.metadata.topic_node import encode_topic
from ixion.language.model.ids import new_id


class TakenOver(NamedTuple):
    elected: Elected
    topics: list[TopicImage]
    changes: int  # nodes that had to be written


async def take_over(
    session: MetadataSession, queue: ChangeQueue, own: OwnBroker, live: Collection[int], now_ms: int, unclean: bool
) -> TakenOver:
    """Become the controller and bring the tree in order.

    `live` are the registered brokers. `unclean`: this broker did not stop cleanly, so every partition gets a new leader
    epoch.
    """
    elected = await elect(session, own.node_id, now_ms)
    if elected.controller_id != own.node_id:
        raise OtherControllerError(elected.controller_id)
    own.controller_epoch = elected.epoch
    await ensure(session, [paths.DELETE_TOPICS])
    doomed = await session.children(paths.DELETE_TOPICS)
    found = [await read_topic(session, name) for name in doomed]
    await own.delete_logs([each[0] for each in found if each is not None])
    for name in doomed:
        await session.multi(await operations_to_delete(session, name))
    topics: list[TopicImage] = []
    operations: list[Operation] = []
    for name in await session.children(paths.TOPICS):
        read = await read_topic(session, name)
        if read is None:
            continue
        topic, missing = read
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
        await session.multi(operations)
    await queue.in_thread(lambda: own.disks.set_strays_aside(topics))
    return TakenOver(elected=elected, topics=topics, changes=len(operations))


def with_leader_if_any(partition: PartitionImage, live: Collection[int]) -> PartitionImage:
    """The partition with a new leader, or without one if no replica can lead it."""
    after = elect_leader(partition, live)
    if after is not None:
        return after
    if partition.leader < 0:
        return partition
    return without_leader(partition, tuple(broker for broker in partition.replicas if broker not in live))
