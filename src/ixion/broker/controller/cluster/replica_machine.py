"""Moves replicas between their phases, and informs the brokers that host them."""

from __future__ import annotations

from collections.abc import Iterable

from ixion.broker.controller.cluster import elections
from ixion.broker.controller.cluster.batch import Batch
from ixion.broker.controller.cluster.cluster import Replica
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.controller.cluster.partition_machine import refresh, write_states
from ixion.broker.controller.cluster.states import ReplicaPhase
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.cluster.witnesses import is_trusted
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Pauses


def add_new(term: Term, batch: Batch, replicas: Iterable[Replica]) -> None:
    """-> NEW. If the partition has a leader, the broker of the new replica gets LeaderAndIsr now."""
    cluster = term.cluster
    for replica in replicas:
        name, number, broker = replica
        cluster.enter_replica(replica, ReplicaPhase.NEW)
        if (name, number) in cluster.leaderships:
            batch.lead((broker,), (name, number), is_new=True)


def put_online(term: Term, batch: Batch, replicas: Iterable[Replica]) -> None:
    """-> ONLINE. An existing replica gets LeaderAndIsr again; a new one has it already."""
    cluster = term.cluster
    for replica in replicas:
        name, number, broker = replica
        known_already = cluster.replica_phase(replica) is ReplicaPhase.NEW
        cluster.enter_replica(replica, ReplicaPhase.ONLINE)
        if not known_already and (name, number) in cluster.leaderships:
            batch.lead((broker,), (name, number))


async def put_offline(term: Term, batch: Batch, replicas: Iterable[Replica], *, for_good: bool = False) -> None:
    """-> OFFLINE: the replica is stopped if its broker can still be reached, and leaves the ISR.

    That unblocks producers with acks=all, which would wait for a dead follower. `for_good`: it is no replica any more.
    """
    cluster = term.cluster
    pending: dict[TopicPartition, list[int]] = {}
    pauses = Pauses()
    for replica in replicas:
        await pauses.pause()
        name, number, broker = replica
        cluster.enter_replica(replica, ReplicaPhase.OFFLINE)
        batch.stop((broker,), (name, number), delete=False)
        if (name, number) in cluster.leaderships:
            pending.setdefault((name, number), []).append(broker)
    while pending:
        wanted: dict[TopicPartition, Leadership] = {}
        for key, brokers in pending.items():
            await pauses.pause()
            known = cluster.leaderships.get(key)
            after = None
            if known is not None:
                trusted = [each for each in known.isr if is_trusted(cluster, key, known, each)]
                after = elections.without_replicas(known, brokers, None if for_good else trusted)
            if after is not None:
                wanted[key] = after
            elif key[0] not in cluster.doomed:
                batch.show(cluster.brokers, (key,))  # the offline replicas have changed
        written = await write_states(term, wanted)
        for key, after in written.items():
            await pauses.pause()
            cluster.leaderships[key] = after
            if key[0] not in cluster.doomed:
                gone = pending[key]
                batch.lead([broker for broker in cluster.replicas(key).all if broker not in gone], key)
        left = [key for key in wanted if key not in written]
        await refresh(term, left)
        pending = {key: pending[key] for key in left}


def delete(term: Term, batch: Batch, replicas: Iterable[Replica]) -> None:
    """OFFLINE -> DELETING: ask the broker to delete the log."""
    for replica in replicas:
        name, number, broker = replica
        term.cluster.enter_replica(replica, ReplicaPhase.DELETING)
        batch.stop((broker,), (name, number), delete=True)


def forget(term: Term, replicas: Iterable[Replica]) -> None:
    """DELETING -> NONE, without waiting for the answer: the replica belongs to no topic any more."""
    for replica in replicas:
        term.cluster.enter_replica(replica, ReplicaPhase.DELETED)
        term.cluster.enter_replica(replica, ReplicaPhase.NONE)
