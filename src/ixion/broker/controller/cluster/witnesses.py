"""Which replicas have every committed record, as far as the controller knows.

The ISR has: a record is committed when all members have it. So have replicas that left the ISR while it was smaller
than min.insync.replicas, because nothing is committed then: the eligible leader replicas (ELR) of KIP-966. Both
together are the witnesses of a partition. The tree has them with the broker epoch of each, by which a restart is
noticed:

    ISR [1, 2, 3]  ELR []   epochs {1: 100, 2: 101, 3: 102}     min.insync.replicas is 2
    ISR [1, 2]     ELR []   broker 3 stops                      records are committed without it
    ISR [1]        ELR [2]  broker 2 stops                      nothing is committed from here on
    broker 1 loses power and registers as 140: it may have lost records. Broker 2 has all of them: wait for it

A witness that registers again counts as one if it says that its logs have kept everything since that epoch
(`log.kept`). If no live witness does, the partition gets no leader until the others are back and one of them does, or
all of them have said where their logs end: then the longest log leads. An operator who cannot wait asks for an unclean
election.

The ELR is used only for this. Kafka's own controller also elects from it if the ISR is gone.
"""

from __future__ import annotations

from dataclasses import replace

from ixion.broker.controller.cluster.cluster import Cluster, Member
from ixion.broker.controller.cluster.leadership import NO_LEADER, Leadership
from ixion.language.model.topic_partition import TopicPartition


def has_kept(known: Leadership, member: Member) -> bool:
    """Whether a witness still has every committed record by its registration."""
    epoch = known.epochs.get(member.broker_id)
    return epoch is None or member.kept_since <= epoch


def is_trusted(cluster: Cluster, key: TopicPartition, known: Leadership, broker: int) -> bool:
    """Whether a replica is registered, its disk works, and it has kept its log. A broker that does not say whether it
    has, as Apache Kafka's, is believed, as by Apache Kafka's controller: otherwise every restart would be a loss."""
    member = cluster.brokers.get(broker)
    if member is None or (*key, broker) in cluster.failed_disks:
        return False
    return member.is_mute or has_kept(known, member)


def awaited(cluster: Cluster, key: TopicPartition, known: Leadership) -> list[int]:
    """The witnesses that are not online and may have every record, if no witness that is online surely has."""
    online = cluster.online(key)
    if any(broker in online and is_trusted(cluster, key, known, broker) for broker in known.witnesses):
        return []
    gone: list[int] = []
    for broker in known.witnesses:
        member = cluster.brokers.get(broker) or cluster.gone.get(broker)
        if broker not in online and (member is None or has_kept(known, member)):
            gone.append(broker)
    return gone


def needed(cluster: Cluster, key: TopicPartition, known: Leadership) -> list[int]:
    """The live replicas that must say where their logs end before one of them is elected: those that are in sync, and
    all witnesses if none of these surely has every record."""
    online = cluster.online(key)
    members = [broker for broker in known.isr if broker in online]
    if any(is_trusted(cluster, key, known, broker) for broker in members):
        return members
    return [broker for broker in known.witnesses if broker in online]


def settled(cluster: Cluster, key: TopicPartition, after: Leadership, min_isr: int) -> Leadership:
    """The leadership as it is written: with its eligible replicas and the epochs of all witnesses.

    An ISR member gets its present epoch when it joins, and whenever there is a leader: the controller has judged it
    then. It keeps the earlier one while there is no leader, so that the next controller does not trust it unseen.
    """
    before = cluster.leaderships.get(key, after)
    replicas = cluster.replicas(key).all
    members = cluster.brokers
    eligible: tuple[int, ...] = ()
    if len(after.isr) < min(min_isr, len(replicas)):
        left = [broker for broker in after.eligible if broker in replicas]
        eligible = tuple([each for each in left if each not in members or has_kept(before, members[each])])
    epochs: dict[int, int] = {}
    for broker in (*after.isr, *eligible):
        judged = broker in after.isr and (after.leader != NO_LEADER or broker not in before.isr)
        epoch = members[broker].epoch if judged and broker in members else before.epochs.get(broker)
        if epoch is not None:
            epochs[broker] = epoch
    return replace(after, eligible=eligible, epochs=epochs)
