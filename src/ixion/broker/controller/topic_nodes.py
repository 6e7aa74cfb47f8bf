"""The nodes of a topic: read from the tree, and written as operations of one transaction."""

from __future__ import annotations

from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import encode_config, read_config
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.image import PartitionImage, TopicImage, partition_image
from ixion.broker.metadata.node import Create, Delete, Operation, Set
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.metadata.topic_node import (
    PartitionState,
    Replicas,
    TopicNode,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from ixion.timer.turns import Steps, finish


def operations_to_create(topic: TopicImage, controller_epoch: int, configured: bool = False) -> list[Operation]:
    """`configured`: the tree already has settings under that name, without a topic. They are replaced."""
    return finish(steps_to_create(topic, controller_epoch, configured))


def steps_to_create(topic: TopicImage, controller_epoch: int, configured: bool) -> Steps[list[Operation]]:
    """As `operations_to_create`, in steps: 10,000 partitions take 80 ms."""
    name = topic.name
    path, config = paths.config("topics", name), encode_config(topic.config)
    operations: list[Operation] = [
        Set(path, config) if configured else Create(path, config),
        Create(paths.topic(name), encode_topic(topic_node(topic))),
        Create(paths.partitions(name)),
    ]
    for partition in topic.partitions:
        operations += operations_to_add(name, partition, controller_epoch)
        yield
    return operations


def operations_to_add(name: str, partition: PartitionImage, controller_epoch: int) -> list[Operation]:
    return [
        Create(paths.partition(name, partition.number)),
        Create(
            paths.partition_state(name, partition.number),
            encode_partition_state(state_of(partition, controller_epoch)),
        ),
    ]


async def operations_to_delete(session: MetadataSession, name: str) -> list[Operation]:
    """Operations, children first. Reads the tree, because a crash may have left any part of the topic."""
    operations: list[Operation] = []

    async def below(path: str) -> None:
        try:
            names = await session.children(path)
        except NoNodeError:
            return
        for child in names:
            await below(f"{path}/{child}")
        operations.append(Delete(path))

    await below(paths.topic(name))
    await below(paths.config("topics", name))
    await below(paths.delete_topic(name))
    return operations


def operations_to_change_state(name: str, partition: PartitionImage, controller_epoch: int) -> Operation:
    return Set(
        paths.partition_state(name, partition.number), encode_partition_state(state_of(partition, controller_epoch))
    )


def topic_node(topic: TopicImage) -> TopicNode:
    return TopicNode(
        topic_id=topic.topic_id,
        partitions={
            each.number: Replicas(all=each.replicas, adding=each.adding, removing=each.removing)
            for each in topic.partitions
        },
    )


def state_of(partition: PartitionImage, controller_epoch: int) -> PartitionState:
    return PartitionState(
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        controller_epoch=controller_epoch,
    )


async def read_topic(session: MetadataSession, name: str) -> tuple[TopicImage, list[int]] | None:
    """The topic in the tree, and its partitions without a state; None if there is no such topic."""
    try:
        node = decode_topic(name, (await session.get(paths.topic(name))).data)
    except NoNodeError:
        return None
    partitions = []
    missing = []
    for number in sorted(node.partitions):
        replicas = node.partitions[number]
        try:
            data = (await session.get(paths.partition_state(name, number))).data
            state = decode_partition_state(name, number, data)
        except NoNodeError:
            missing.append(number)
            state = PartitionState(leader=-1, leader_epoch=-1, isr=replicas.all, controller_epoch=0)
        partitions.append(partition_image(number, replicas, state))
    config = await read_config(session, "topics", name)
    return TopicImage(name=name, topic_id=node.topic_id or b"", partitions=partitions, config=config), missing
