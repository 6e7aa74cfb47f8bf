"""Finds brokers that restarted while no controller looked.

A controller takes a broker that goes, or that comes back with another broker epoch, out of the ISR of its partitions.
If the controller is lost in the same moment, the next one finds the broker registered and its partitions as they were:
a broker whose disk was replaced would lead on with an empty log, and its followers would cut theirs.

The tree shows it. The registration of a broker is created anew in every life, and the controller writes the state of a
partition after every change of its ISR. So a member of the ISR whose registration is younger than the state has
registered since it was in sync. Example, in zxids:

    100  broker 2 registers        110  state of t-0: leader 2, ISR [2, 3]
    120  the controller is lost, and the session of broker 2 expires        130  broker 2 registers
    140  the next controller: 130 > 110, so broker 2 is not known to be in sync

Whether it restarted or only lost its session cannot be seen; it fetches from the next leader and joins the ISR again.
A state that the old controller writes between 120 and its own end hides the restart: ZooKeeper's transactions cannot
check that a registration is still the same one.
"""

from __future__ import annotations

from typing import Final

from ixion.controller.cluster import elections
from ixion.controller.cluster.batch import Batch
from ixion.controller.cluster.cluster import Cluster
from ixion.controller.cluster.leadership import Leadership
from ixion.controller.cluster.partition_machine import elect, elect_furthest
from ixion.controller.cluster.term import Term
from ixion.model.topic_partition import TopicPartition
from ixion.timer.turns import Pauses

Restarted = dict[TopicPartition, frozenset[int]]  # the members of its ISR that are registered anew

WHY: Final = "brokers restarted while there was no controller"


async def restarted_members(cluster: Cluster) -> Restarted:
    """To be called when the states have just been read."""
    found: Restarted = {}
    pauses = Pauses()
    for key, known in cluster.leaderships.items():
        await pauses.pause()
        zxid = known.zxid
        if zxid is None:
            continue
        younger = [broker for broker in known.isr if broker in cluster.brokers and cluster.brokers[broker].epoch > zxid]
        if younger:
            found[key] = frozenset(younger)
    return found


async def distrust(term: Term, batch: Batch, restarted: Restarted) -> None:
    """Members of the ISR that did not restart go on alone. Where there is none, the longest log decides."""
    cluster = term.cluster
    others: list[TopicPartition] = []
    none_left: list[TopicPartition] = []
    pauses = Pauses()
    for key, brokers in restarted.items():
        await pauses.pause()
        known = cluster.leaderships.get(key)
        if known is not None:
            ran_on = any(each in known.isr and each not in brokers for each in cluster.online(key))
            (others if ran_on else none_left).append(key)

    def rule(key: TopicPartition, known: Leadership) -> Leadership | None:
        return elections.without_restarted(cluster.replicas(key), known, cluster.online(key), restarted[key])

    await elect(term, batch, others, rule, WHY)
    await elect_furthest(term, batch, none_left, WHY)
