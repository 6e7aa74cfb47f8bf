"""What the controller does when brokers register, go away, restart, or change their addresses.

A broker is its id and its epoch: the same id with another epoch has gone and come back between two looks.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ixion.broker.controller.cluster import deletion, leftovers, reassignment
from ixion.broker.controller.cluster.batch import Batch
from ixion.broker.controller.cluster.cluster import Member, Replica
from ixion.broker.controller.cluster.partition_machine import bring_online
from ixion.broker.controller.cluster.registered import registered_brokers
from ixion.broker.controller.cluster.replica_machine import put_offline, put_online
from ixion.broker.controller.cluster.states import PartitionPhase
from ixion.broker.controller.cluster.term import Term
from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


async def follow_brokers(term: Term) -> None:
    """Compare the registered brokers with those of the last look, and handle the differences."""
    known = term.cluster.brokers
    now = await registered_brokers(term.session)
    come = [member for broker, member in now.items() if broker not in known]
    gone = [member for broker, member in known.items() if broker not in now]
    bounced = [member for broker, member in now.items() if broker in known and known[broker].epoch != member.epoch]
    changed = [
        member
        for broker, member in now.items()
        if broker in known and known[broker].epoch == member.epoch and known[broker].registration != member.registration
    ]
    if come or gone or bounced:
        logger.info(
            "brokers new: %s, gone: %s, restarted: %s; %d are registered",
            *([member.broker_id for member in members] for members in (come, gone, bounced)),
            len(now),
        )
    lost = [member.broker_id for member in (*gone, *bounced)]
    if lost:
        await brokers_gone(term, lost)
    if come or bounced:
        await brokers_come(term, [*come, *bounced])
    if changed:
        for member in changed:
            term.cluster.brokers[member.broker_id] = member
            await term.channels.close(member.broker_id)
            term.channels.open(member)
        batch = term.batch()
        everything = list(term.cluster.all_keys())
        batch.show(term.cluster.brokers, ())
        batch.show([member.broker_id for member in changed], everything)
        replicas = term.cluster.replicas_on(member.broker_id for member in changed)
        put_online(term, batch, [each for each in replicas if each[0] not in term.cluster.doomed])
        await term.send(batch)


async def brokers_gone(term: Term, brokers: Iterable[int]) -> None:
    cluster = term.cluster
    lost = list(brokers)
    for broker in lost:
        await term.channels.close(broker)
        cluster.gone[broker] = cluster.brokers.pop(broker)
        cluster.stopping.discard(broker)
    cluster.failed_disks -= {replica for replica in cluster.failed_disks if replica[2] in lost}
    batch = term.batch()
    batch.show(cluster.brokers, ())
    replicas = cluster.replicas_on(lost)
    await replicas_lost(term, batch, [replica for replica in replicas if replica[0] not in cluster.doomed])
    await deletion.replicas_lost(term, [replica for replica in replicas if replica[0] in cluster.doomed])
    await term.send(batch)


async def replicas_lost(term: Term, batch: Batch, replicas: list[Replica]) -> None:
    """Elect other leaders for the partitions of lost replicas, and take these out of the ISR."""
    cluster = term.cluster
    headless: dict[TopicPartition, None] = {}
    for name, number, broker in replicas:
        known = cluster.leaderships.get((name, number))
        if known is not None and known.leader == broker:
            cluster.enter((name, number), PartitionPhase.OFFLINE)
            headless[name, number] = None
    await bring_online(term, batch, headless)
    await put_offline(term, batch, replicas)


async def brokers_come(term: Term, members: Iterable[Member]) -> None:
    """Send the newcomers to the other brokers and all partitions to the newcomers; then bring their replicas online."""
    cluster = term.cluster
    newcomers = {member.broker_id: member for member in members}
    for broker, member in newcomers.items():
        cluster.brokers[broker] = member
        cluster.gone.pop(broker, None)
        term.channels.open(member)
    # Brokers must know each other before the first LeaderAndIsr names one of them as a leader.
    batch = term.batch()
    batch.show([broker for broker in cluster.brokers if broker not in newcomers], ())
    batch.show(newcomers, list(cluster.all_keys()))
    await term.send(batch)
    batch = term.batch()
    replicas = cluster.replicas_on(newcomers)
    put_online(term, batch, [replica for replica in replicas if replica[0] not in cluster.doomed])
    await bring_online(term, batch)
    await term.send(batch)
    await reassignment.resume(term, newcomers)
    await leftovers.remind(term, newcomers)
    await deletion.resume(term)


async def bring_back(term: Term) -> None:
    """A broker that was waited for says again where its logs end: elect leaders, and continue moves that waited."""
    batch = term.batch()
    await bring_online(term, batch)
    await term.send(batch)
    await reassignment.resume(term)


async def disks_changed(term: Term, broker: int, failed: set[TopicPartition], working: set[TopicPartition]) -> None:
    """Handle a broker's answer about which of its replicas are on a failed log directory."""
    cluster = term.cluster
    if broker not in cluster.brokers:
        return
    known = {(name, number) for name, number, where in cluster.failed_disks if where == broker}
    lost = [(*key, broker) for key in failed - known if cluster.has(key) and broker in cluster.replicas(key).all]
    back = [(*key, broker) for key in working & known]
    if not lost and not back:
        return
    batch = term.batch()
    cluster.failed_disks.update(lost)
    cluster.failed_disks.difference_update(back)
    if lost:
        logger.warning("broker %d has lost a log directory with %d replicas", broker, len(lost))
        await replicas_lost(term, batch, [replica for replica in lost if replica[0] not in cluster.doomed])
    put_online(term, batch, [replica for replica in back if replica[0] not in cluster.doomed])
    await bring_online(term, batch)
    await term.send(batch)
