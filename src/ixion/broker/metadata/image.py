"""The cluster image: this broker's copy of the metadata in memory (topics, partitions, brokers, the controller).

The tree has the authoritative state; requests are served from this copy, so that none of them waits for a disk. It
changes only on the event loop, after the tree was read or changed, or with UpdateMetadata from the controller
(`ixion.broker.replica.control`). `version` grows with each change.

A PartitionImage is replaced, never changed, so a reference to one stays consistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ixion.broker.metadata.topic_node import PartitionState, Replicas


class PartitionImage(NamedTuple):
    number: int
    leader: int  # -1: none
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]  # the preferred leader first
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()  # replicas whose broker or disk is down
    partition_epoch: int = 0  # the version of its state node: counts all changes, including those of the ISR

    @property
    def preferred(self) -> int:
        return self.replicas[0] if self.replicas else -1


@dataclass(slots=True, kw_only=True, eq=False)
class TopicImage:
    """A topic as this broker knows it."""

    name: str
    topic_id: bytes
    partitions: list[PartitionImage]  # by number, without gaps
    config: dict[str, str]  # the topic's own settings


class BrokerImage(NamedTuple):
    broker_id: int
    epoch: int
    endpoints: Mapping[str, tuple[str, int]]  # host and port by the name of the listener
    rack: str | None = None


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class ClusterImage:
    """One for each broker; changed in place."""

    cluster_id: str
    topics: dict[str, TopicImage] = field(default_factory=dict)
    ids: dict[bytes, TopicImage] = field(default_factory=dict)
    brokers: dict[int, BrokerImage] = field(default_factory=dict)
    controller_id: int = -1
    controller_epoch: int = 0
    features: dict[str, int] = field(default_factory=dict)  # finalized levels
    features_epoch: int = 0
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)  # by group id; groups with settings
    early_configs: dict[str, dict[str, str]] = field(
        default_factory=dict
    )  # settings of topics not in `topics` yet, with their id
    complete: bool = False  # all topics of the cluster are here: a missing one does not exist
    version: int = 0

    def put_topic(self, topic: TopicImage) -> None:
        known = self.topics.get(topic.name)
        if known is not None:
            self.ids.pop(known.topic_id, None)
        self.topics[topic.name] = topic
        self.ids[topic.topic_id] = topic
        self.early_configs.pop(topic.name, None)
        self.version += 1

    def remove_topic(self, name: str) -> TopicImage | None:
        topic = self.topics.pop(name, None)
        if topic is not None:
            self.ids.pop(topic.topic_id, None)
            self.version += 1
        return topic

    def topic_config(self, name: str) -> dict[str, str] | None:
        """The topic's own settings; None if neither the topic nor its settings are known. If it is being replaced by
        another of its name, those of the other, because logs of that one are made before the image has it."""
        early = self.early_configs.get(name)
        if early is not None:
            return early
        topic = self.topics.get(name)
        return None if topic is None else topic.config

    def change_topic_config(self, name: str, config: dict[str, str]) -> bool:
        """Whether that is news; settings of a topic of which nothing is known yet are not kept. If a topic is being
        replaced by another of its name, both get them."""
        news = False
        topic = self.topics.get(name)
        if topic is not None and topic.config != config:
            topic.config = config
            news = True
        if self.early_configs.get(name, config) != config:
            self.early_configs[name] = config
            news = True
        self.version += news
        return news

    def partition(self, name: str, number: int) -> PartitionImage | None:
        topic = self.topics.get(name)
        if topic is None or not 0 <= number < len(topic.partitions):
            return None
        return topic.partitions[number]


def partition_image(number: int, replicas: Replicas, state: PartitionState) -> PartitionImage:
    return PartitionImage(
        number=number,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        replicas=replicas.all,
        adding=replicas.adding,
        removing=replicas.removing,
    )
