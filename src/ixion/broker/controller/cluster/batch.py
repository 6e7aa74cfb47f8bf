"""The requests to brokers for one change: LeaderAndIsr, UpdateMetadata and StopReplica, in this order.

A change names partitions and the brokers to be informed; `requests` then makes one request of each kind for each
broker, or several if there are very many partitions. Every broker gets UpdateMetadata for a partition whose leader or
in-sync replicas changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from ixion.broker.controller.cluster.cluster import Cluster, Member
from ixion.broker.controller.cluster.leadership import NO_LEADER, Leadership
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.kept import Kept
from ixion.language.protocol.messages.k04_leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ixion.language.protocol.messages.k05_stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from ixion.language.protocol.messages.k06_update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ixion.timer.turns import Steps

T = TypeVar("T")
ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest

IN_REQUEST: Final = 10_000  # partitions in one request; each is up to 20 elements of it
MORE_FOLLOW: Final = 1  # of UpdateMetadata: "incremental"; on ZooKeeper only ixion's brokers look at it
DELETED: Final = -2  # as a leader: the partition is being deleted; as a leader epoch: whatever the epoch is
NO_EPOCH: Final = -1
NEVER_LED: Final = Leadership(leader=NO_LEADER, leader_epoch=0, isr=())  # of a doomed partition without a state
PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}  # Kafka's ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """The controller that sends the requests."""

    controller_id: int
    controller_epoch: int
    listener: str  # by which brokers reach each other


class Batch:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._led: dict[int, dict[TopicPartition, bool]] = {}  # broker -> partition -> whether it is new
        self._stopped: dict[int, dict[TopicPartition, bool]] = {}  # broker -> partition -> whether to delete its log
        self._shown: dict[int, set[TopicPartition]] = {}  # broker -> partitions to be shown in its metadata
        # Partitions for all brokers: one set, because a set per broker would be too large when a term begins.
        self._shown_to_all: set[TopicPartition] | None = None

    def lead(self, brokers: Iterable[int], key: TopicPartition, *, is_new: bool = False) -> None:
        """Send these brokers LeaderAndIsr for a partition, and every broker UpdateMetadata."""
        for broker in brokers:
            if broker >= 0:
                led = self._led.setdefault(broker, {})
                led[key] = is_new or led.get(key, False)
        self.show(self._cluster.brokers, (key,))

    def stop(self, brokers: Iterable[int], key: TopicPartition, *, delete: bool) -> None:
        for broker in brokers:
            stopped = self._stopped.setdefault(broker, {})
            stopped[key] = delete or stopped.get(key, False)

    def show(self, brokers: Iterable[int], keys: Iterable[TopicPartition]) -> None:
        """Send these brokers the list of live brokers, and these partitions."""
        if brokers is self._cluster.brokers:
            if self._shown_to_all is None:
                self._shown_to_all = set()
            self._shown_to_all.update(keys)
            return
        shown = tuple(keys)
        for broker in brokers:
            self._shown.setdefault(broker, set()).update(shown)

    @property
    def is_empty(self) -> bool:
        return not (self._led or self._stopped or self._shown) and self._shown_to_all is None

    def requests(self, sender: Sender) -> Steps[dict[int, list[ControlRequest]]]:
        """Requests by broker; none for a broker that is not registered."""
        made: dict[int, list[ControlRequest]] = {}
        brokers = self._cluster.brokers
        for broker, led in self._led.items():
            if broker in brokers:
                for some in pieces(list(led.items())):
                    request = yield from self._leader_and_isr(sender, brokers[broker].epoch, dict(some))
                    made.setdefault(broker, []).append(request)
        # Both lists are encoded once for all brokers: encoding them for each took most of a controller's time.
        everyone = Kept([broker_entry(member) for member in brokers.values()])
        known: dict[frozenset[TopicPartition], list[Kept[UpdateMetadataTopicState]]] = {}
        for_all = None if self._shown_to_all is None else frozenset(self._shown_to_all)
        for broker in [*brokers] if for_all is not None else [*self._shown]:
            if broker not in brokers:
                continue
            more = self._shown.get(broker)
            keys = frozenset(more or ()) if for_all is None else for_all | more if more else for_all
            if keys not in known:
                known[keys] = []
                for several in pieces(sorted(keys)):
                    states = yield from self._metadata_of(several)
                    known[keys].append(Kept(states))
            for left, states in zip(range(len(known[keys]) - 1, -1, -1), known[keys], strict=True):
                update = UpdateMetadataRequest(
                    type=MORE_FOLLOW if left else 0,
                    controller_id=sender.controller_id,
                    controller_epoch=sender.controller_epoch,
                    broker_epoch=brokers[broker].epoch,
                    topic_states=states,
                    live_brokers=everyone,
                )
                made.setdefault(broker, []).append(update)
        for broker, stopped in self._stopped.items():
            if broker in brokers:
                stop = yield from self._stop_replica(sender, brokers[broker].epoch, stopped)
                made.setdefault(broker, []).append(stop)
        return made

    def _leader_and_isr(
        self, sender: Sender, broker_epoch: int, led: Mapping[TopicPartition, bool]
    ) -> Steps[LeaderAndIsrRequest]:
        cluster = self._cluster
        states: dict[str, list[LeaderAndIsrPartitionState]] = {}
        leaders: set[int] = set()
        for (name, number), is_new in led.items():
            yield
            known = cluster.leaderships.get((name, number))
            if known is None or not cluster.has((name, number)):
                continue
            replicas = cluster.replicas((name, number))
            leaders.add(known.leader)
            states.setdefault(name, []).append(
                LeaderAndIsrPartitionState(
                    partition_index=number,
                    controller_epoch=known.controller_epoch,
                    leader=known.leader,
                    leader_epoch=known.leader_epoch,
                    isr=known.isr,
                    partition_epoch=known.partition_epoch,
                    replicas=replicas.all,
                    adding_replicas=replicas.adding,
                    removing_replicas=replicas.removing,
                    is_new=is_new,
                    leader_recovery_state=int(known.recovering),
                )
            )
        live = []
        for broker in sorted(leaders & cluster.brokers.keys()):
            host, port = address_of(cluster.brokers[broker], sender.listener) or ("", -1)
            live.append(LeaderAndIsrLiveLeader(broker_id=broker, host_name=host, port=port))
        topics = [
            LeaderAndIsrTopicState(
                topic_name=name, topic_id=cluster.topics[name].topic_id, partition_states=tuple(partitions)
            )
            for name, partitions in states.items()
        ]
        return LeaderAndIsrRequest(
            controller_id=sender.controller_id,
            controller_epoch=sender.controller_epoch,
            broker_epoch=broker_epoch,
            type=0,  # the others are for a migration to KRaft
            topic_states=tuple(topics),
            live_leaders=tuple(live),
        )

    def _metadata_of(self, keys: Iterable[TopicPartition]) -> Steps[tuple[UpdateMetadataTopicState, ...]]:
        cluster = self._cluster
        states: dict[str, list[UpdateMetadataPartitionState]] = {}
        for name, number in keys:
            yield
            known = cluster.leaderships.get((name, number))
            if known is None and name in cluster.doomed:
                known = NEVER_LED
            if known is None or not cluster.has((name, number)):
                continue
            states.setdefault(name, []).append(
                UpdateMetadataPartitionState(
                    partition_index=number,
                    controller_epoch=known.controller_epoch,
                    leader=DELETED if name in cluster.doomed else known.leader,
                    leader_epoch=known.leader_epoch,
                    isr=known.isr,
                    zk_version=known.partition_epoch,
                    replicas=cluster.replicas((name, number)).all,
                    offline_replicas=cluster.offline((name, number)),
                )
            )
        return tuple(
            [
                UpdateMetadataTopicState(
                    topic_name=name, topic_id=cluster.topics[name].topic_id, partition_states=tuple(partitions)
                )
                for name, partitions in states.items()
            ]
        )

    def _stop_replica(
        self, sender: Sender, broker_epoch: int, stopped: Mapping[TopicPartition, bool]
    ) -> Steps[StopReplicaRequest]:
        cluster = self._cluster
        states: dict[str, list[StopReplicaPartitionState]] = {}
        for (name, number), delete in stopped.items():
            yield
            known = cluster.leaderships.get((name, number))
            epoch = NO_EPOCH if known is None else known.leader_epoch
            states.setdefault(name, []).append(
                StopReplicaPartitionState(
                    partition_index=number,
                    leader_epoch=DELETED if name in cluster.doomed else epoch,
                    delete_partition=delete,
                )
            )
        topics = [
            StopReplicaTopicState(topic_name=name, partition_states=tuple(partitions))
            for name, partitions in states.items()
        ]
        return StopReplicaRequest(
            controller_id=sender.controller_id,
            controller_epoch=sender.controller_epoch,
            broker_epoch=broker_epoch,
            topic_states=tuple(topics),
        )


def pieces(keys: list[T]) -> list[list[T]]:
    """Splits keys into requests: a broker reads at most `ELEMENT_BUDGET` elements. An empty list is one piece."""
    return [keys[first : first + IN_REQUEST] for first in range(0, max(len(keys), 1), IN_REQUEST)]


def broker_entry(member: Member) -> UpdateMetadataBroker:
    endpoints = tuple(
        [
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=PROTOCOLS[endpoint.protocol],
            )
            for endpoint in member.registration.endpoints
        ]
    )
    return UpdateMetadataBroker(id=member.broker_id, endpoints=endpoints, rack=member.registration.rack)


def address_of(member: Member, listener: str) -> tuple[str, int] | None:
    for endpoint in member.registration.endpoints:
        if endpoint.listener == listener:
            return endpoint.host, endpoint.port
    return None
