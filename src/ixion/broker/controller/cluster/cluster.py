"""The controller's view of the cluster: brokers, topics, replicas, leaders, and the phase of each.

Every controller builds it from the tree. It changes only on the controller's queue, after the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.controller.cluster.states import (
    PARTITION_BEFORE,
    REPLICA_BEFORE,
    PartitionPhase,
    ReplicaPhase,
    entered,
)
from ixion.broker.metadata.broker_node import Registration
from ixion.broker.metadata.topic_node import Replicas
from ixion.language.model.topic_partition import TopicPartition

Replica = tuple[str, int, int]  # topic, partition, broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A broker that is registered."""

    broker_id: int
    epoch: int  # the zxid of its registration: another one means that the broker restarted
    registration: Registration

    @property
    def kept_since(self) -> int:
        """Its logs have everything that they got under this broker epoch or a later one."""
        said = self.registration.kept_since
        return self.epoch if said is None else said

    @property
    def is_mute(self) -> bool:
        """It does not say whether its logs have lost anything, as Apache Kafka's brokers."""
        return self.registration.kept_since is None and not self.registration.in_doubt


@dataclass(slots=True, kw_only=True)
class Topic:
    name: str
    topic_id: bytes
    partitions: dict[int, Replicas]


class Cluster:
    def __init__(self) -> None:
        self.brokers: dict[int, Member] = {}
        self.stopping: set[int] = set()  # in a controlled shutdown, and still registered
        self.gone: dict[int, Member] = {}  # brokers that were registered in this term, as they were last
        self.topics: dict[str, Topic] = {}
        self.ids: dict[bytes, str] = {}
        self.leaderships: dict[TopicPartition, Leadership] = {}
        self.doomed: set[str] = set()  # topics that are being deleted
        self.failed_disks: set[Replica] = set()  # replicas on a failed log directory of a live broker
        self._partitions: dict[TopicPartition, PartitionPhase] = {}
        self._replicas: dict[Replica, ReplicaPhase] = {}

    # Topics.

    def put_topic(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.ids[topic.topic_id] = topic.name

    def remove_topic(self, name: str) -> None:
        topic = self.topics.pop(name, None)
        self.doomed.discard(name)
        if topic is None:
            return
        self.ids.pop(topic.topic_id, None)
        for number, replicas in topic.partitions.items():
            self.leaderships.pop((name, number), None)
            self._partitions.pop((name, number), None)
            for broker in replicas.all:
                self._replicas.pop((name, number, broker), None)
                self.failed_disks.discard((name, number, broker))

    def all_keys(self) -> Iterator[TopicPartition]:
        for topic in self.topics.values():
            for number in topic.partitions:
                yield topic.name, number

    def keys_of(self, name: str) -> list[TopicPartition]:
        topic = self.topics.get(name)
        return [] if topic is None else [(name, number) for number in topic.partitions]

    def replicas(self, key: TopicPartition) -> Replicas:
        return self.topics[key[0]].partitions[key[1]]

    def has(self, key: TopicPartition) -> bool:
        topic = self.topics.get(key[0])
        return topic is not None and key[1] in topic.partitions

    def replicas_on(self, brokers: Iterable[int]) -> list[Replica]:
        wanted = set(brokers)
        return [
            (topic.name, number, broker)
            for topic in self.topics.values()
            for number, replicas in topic.partitions.items()
            for broker in replicas.all
            if broker in wanted
        ]

    def replicas_of(self, keys: Iterable[TopicPartition]) -> list[Replica]:
        return [(name, number, broker) for name, number in keys for broker in self.replicas((name, number)).all]

    # Brokers.

    @property
    def live(self) -> list[int]:
        """Brokers that are registered and not shutting down."""
        return [broker for broker in self.brokers if broker not in self.stopping]

    @property
    def epochs(self) -> dict[int, int]:
        """The broker epoch of each registered broker."""
        return {broker: member.epoch for broker, member in self.brokers.items()}

    def online(self, key: TopicPartition, *, with_stopping: bool = False) -> list[int]:
        """The replicas of a partition whose broker and disk work."""
        return [
            broker
            for broker in self.replicas(key).all
            if broker in self.brokers
            and (with_stopping or broker not in self.stopping)
            and (*key, broker) not in self.failed_disks
        ]

    def offline(self, key: TopicPartition) -> tuple[int, ...]:
        online = self.online(key)
        return tuple([broker for broker in self.replicas(key).all if broker not in online])

    # Phases.

    def phase(self, key: TopicPartition) -> PartitionPhase:
        return self._partitions.get(key, PartitionPhase.NONE)

    def enter(self, key: TopicPartition, phase: PartitionPhase) -> None:
        entered(self.phase(key), phase, PARTITION_BEFORE, f"partition {key[0]}-{key[1]}")
        if phase is PartitionPhase.NONE:
            self._partitions.pop(key, None)
        else:
            self._partitions[key] = phase

    def replica_phase(self, replica: Replica) -> ReplicaPhase:
        return self._replicas.get(replica, ReplicaPhase.NONE)

    def enter_replica(self, replica: Replica, phase: ReplicaPhase) -> None:
        what = f"replica {replica[2]} of {replica[0]}-{replica[1]}"
        entered(self.replica_phase(replica), phase, REPLICA_BEFORE, what)
        if phase is ReplicaPhase.NONE:
            self._replicas.pop(replica, None)
            self.failed_disks.discard(replica)
        else:
            self._replicas[replica] = phase

    def found_partition(self, key: TopicPartition, phase: PartitionPhase) -> None:
        """Set the phase that the take-over finds; no transition."""
        self._partitions[key] = phase

    def found_replica(self, replica: Replica, phase: ReplicaPhase) -> None:
        self._replicas[replica] = phase
