"""Which nodes of the tree make a topic, as lists of operations for one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ixion.config.errors import InvalidSettingError
from ixion.config.topic import parse_topic
from ixion.metadata import paths
from ixion.metadata.errors import NoNodeError
from ixion.metadata.image import PartitionImage, TopicImage, partition_image
from ixion.metadata.node import Create, Delete, Operation, Set
from ixion.metadata.notice_node import decode_config, encode_config, encode_config_change
from ixion.metadata.session import MetadataSession
from ixion.metadata.topic_node import (
    PartitionState,
    Replicas,
    TopicNode,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from ixion.model.errors import ErrorCode, KafkaError

FIRST_EPOCH: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """What somebody wants. -1: as the broker's settings say."""

    name: str
    partitions: int = -1
    replication: int = -1
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class TopicOutcome:
    """What became of one topic of a request."""

    name: str
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic: TopicImage | None = None


def check_topic_config(config: Mapping[str, str]) -> dict[str, str]:
    try:
        parse_topic(config)
    except InvalidSettingError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return dict(config)


def operations_to_create(topic: TopicImage, controller_epoch: int, configured: bool = False) -> list[Operation]:
    """`configured`: the tree has settings under that name, of no topic. They give way."""
    name = topic.name
    path, config = paths.config("topics", name), encode_config(topic.config)
    operations: list[Operation] = [
        Set(path, config) if configured else Create(path, config),
        Create(paths.topic(name), encode_topic(topic_node(topic))),
        Create(paths.partitions(name)),
    ]
    for partition in topic.partitions:
        operations += operations_to_add(name, partition, controller_epoch)
    return operations


def operations_to_add(name: str, partition: PartitionImage, controller_epoch: int) -> list[Operation]:
    return [
        Create(paths.partition(name, partition.number)),
        Create(
            paths.partition_state(name, partition.number),
            encode_partition_state(state_of(partition, controller_epoch)),
        ),
    ]


def operations_to_delete(session: MetadataSession, name: str) -> list[Operation]:
    """Children first. What is there is looked up, because a crash may have left any part of it."""
    operations: list[Operation] = []

    def below(path: str) -> None:
        try:
            names = session.children(path)
        except NoNodeError:
            return
        for child in names:
            below(f"{path}/{child}")
        operations.append(Delete(path))

    below(paths.topic(name))
    below(paths.config("topics", name))
    below(paths.delete_topic(name))
    return operations


def operations_to_change_state(name: str, partition: PartitionImage, controller_epoch: int) -> Operation:
    return Set(
        paths.partition_state(name, partition.number), encode_partition_state(state_of(partition, controller_epoch))
    )


def operations_to_configure(kind: str, entity: str, config: Mapping[str, str], exists: bool) -> list[Operation]:
    path = paths.config(kind, entity)
    data = encode_config(config)
    return [
        Set(path, data) if exists else Create(path, data),
        Create(paths.NEW_CONFIG_CHANGE, encode_config_change(f"{kind}/{entity}"), sequential=True),
    ]


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


def new_partitions(
    replicas: Iterable[tuple[int, ...]], live: Sequence[int], first: int = 0
) -> Iterator[PartitionImage]:
    """The first live replica leads; those that live are in sync, as all of them are empty."""
    for number, each in enumerate(replicas, first):
        isr = tuple([broker for broker in each if broker in live])
        yield PartitionImage(
            number=number,
            leader=isr[0] if isr else -1,
            leader_epoch=FIRST_EPOCH,
            isr=isr or each[:1],
            replicas=each,
        )


def read_topic(session: MetadataSession, name: str) -> tuple[TopicImage, list[int]] | None:
    """The topic as the tree has it, and its partitions that have no state yet; None if it is not there."""
    try:
        node = decode_topic(name, session.get(paths.topic(name)).data)
    except NoNodeError:
        return None
    partitions = []
    missing = []
    for number in sorted(node.partitions):
        replicas = node.partitions[number]
        try:
            data = session.get(paths.partition_state(name, number)).data
            state = decode_partition_state(name, number, data)
        except NoNodeError:
            missing.append(number)
            state = PartitionState(leader=-1, leader_epoch=-1, isr=replicas.all, controller_epoch=0)
        partitions.append(partition_image(number, replicas, state))
    config = read_config(session, "topics", name)
    return TopicImage(name=name, topic_id=node.topic_id or b"", partitions=partitions, config=config), missing


def read_config(session: MetadataSession, kind: str, entity: str) -> dict[str, str]:
    try:
        return decode_config(f"{kind}/{entity}", session.get(paths.config(kind, entity)).data)
    except NoNodeError:
        return {}
