"""Deletes topics: first from the metadata of every broker, then the replicas, then the nodes.

A replica on a broker that is gone cannot be deleted now. The topic stays doomed, its nodes stay in the tree, and the
deletion continues when that broker returns. Clients no longer see the topic meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from ixion.broker.controller.cluster.cluster import Replica
from ixion.broker.controller.cluster.fenced_tree import IN_FLIGHT
from ixion.broker.controller.cluster.states import PartitionPhase, ReplicaPhase
from ixion.broker.controller.cluster.term import Term
from ixion.broker.metadata import paths
from ixion.broker.metadata.errors import NoNodeError
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


async def begin(term: Term, names: Iterable[str]) -> None:
    cluster = term.cluster
    batch = term.batch()
    new = [name for name in names if name in cluster.topics and name not in cluster.doomed]
    for name in new:
        cluster.doomed.add(name)
        for key in cluster.keys_of(name):
            if cluster.phase(key) is not PartitionPhase.NONE:
                cluster.enter(key, PartitionPhase.OFFLINE)
                cluster.enter(key, PartitionPhase.NONE)
            batch.show(cluster.brokers, (key,))
    await term.send(batch)
    await resume(term)


async def resume(term: Term) -> None:
    """Ask live brokers to delete the replicas that they still have."""
    cluster = term.cluster
    batch = term.batch()
    for name in cluster.doomed:
        for replica in cluster.replicas_of(cluster.keys_of(name)):
            phase = cluster.replica_phase(replica)
            if phase in (ReplicaPhase.DELETING, ReplicaPhase.DELETED):
                continue
            if phase is ReplicaPhase.NONE:
                cluster.enter_replica(replica, ReplicaPhase.NEW)
            cluster.enter_replica(replica, ReplicaPhase.OFFLINE)
            if replica[2] in cluster.brokers:
                cluster.enter_replica(replica, ReplicaPhase.DELETING)
                batch.stop((replica[2],), replica[:2], delete=True)
            else:
                cluster.enter_replica(replica, ReplicaPhase.KEPT)
    await term.send(batch)
    await finish(term)


async def replicas_lost(term: Term, replicas: Iterable[Replica]) -> None:
    """Keep replicas of a lost broker marked: they may still exist when it returns."""
    for replica in replicas:
        if term.cluster.replica_phase(replica) is not ReplicaPhase.DELETED:
            if term.cluster.replica_phase(replica) is ReplicaPhase.ONLINE:
                term.cluster.enter_replica(replica, ReplicaPhase.OFFLINE)
            if term.cluster.replica_phase(replica) is not ReplicaPhase.KEPT:
                term.cluster.enter_replica(replica, ReplicaPhase.KEPT)
    term.deletions.changed()


async def answered(term: Term, broker: int, codes: Mapping[TopicPartition, int]) -> None:
    """Handle a broker's answer to StopReplica with deletion."""
    cluster = term.cluster
    for (name, number), code in codes.items():
        replica = (name, number, broker)
        if name not in cluster.doomed or cluster.replica_phase(replica) is not ReplicaPhase.DELETING:
            continue
        if code == ErrorCode.NONE:
            cluster.enter_replica(replica, ReplicaPhase.DELETED)
        else:
            logger.error("broker %d cannot delete its replica of %s-%d: error %d", broker, name, number, code)
            cluster.enter_replica(replica, ReplicaPhase.KEPT)
    await finish(term)


async def finish(term: Term) -> None:
    """Delete the nodes of topics without replicas."""
    cluster = term.cluster
    for name in list(cluster.doomed):
        replicas = cluster.replicas_of(cluster.keys_of(name))
        if all(cluster.replica_phase(replica) is ReplicaPhase.DELETED for replica in replicas):
            await term.tree.delete_all(await nodes_of(term, name))
            cluster.remove_topic(name)
            logger.info("topic %s is deleted", name)
    term.deletions.changed()


def is_stuck(term: Term, name: str) -> bool:
    """Whether the deletion cannot go on for now."""
    replicas = term.cluster.replicas_of(term.cluster.keys_of(name))
    return any(term.cluster.replica_phase(replica) is ReplicaPhase.KEPT for replica in replicas)


async def nodes_of(term: Term, name: str) -> list[str]:
    """The nodes of a topic, children first; the mark of its deletion last."""
    session = term.session

    async def below(path: str) -> list[str]:
        try:
            names = await session.children(path)
        except NoNodeError:
            return []
        found: list[str] = []
        for start in range(0, len(names), IN_FLIGHT):
            some = await asyncio.gather(*[below(f"{path}/{each}") for each in names[start : start + IN_FLIGHT]])
            found += [each for paths_below in some for each in paths_below]
        return [*found, path]

    return [
        *await below(paths.topic(name)),
        *await below(paths.config("topics", name)),
        *await below(paths.delete_topic(name)),
    ]
