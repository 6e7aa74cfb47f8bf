"""Finds brokers that restarted while there was no controller.

When a broker goes, or returns with another broker epoch, the controller takes it out of the ISR of its partitions. If
the controller is lost at the same moment, the next one finds the broker registered and its partitions unchanged. A
broker with a replaced disk would then lead with an empty log, and its followers would truncate theirs.

The tree shows the restart. A broker is registered anew at every start, and the controller writes the state of a
partition after every change of its ISR. So an ISR member whose registration is younger than the state has registered
since it was in sync. Example, in zxids:

    100  broker 2 registers        110  state of t-0: leader 2, ISR [2, 3]
    120  the controller is lost, and the session of broker 2 expires        130  broker 2 registers
    140  the next controller: 130 > 110, so broker 2 is not known to be in sync

Whether it restarted or only lost its session cannot be seen; it fetches from the next leader and joins the ISR again. A
state that the old controller writes between 120 and its own end hides the restart: a ZooKeeper transaction cannot check
that a registration is still the same.
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

Restarted = dict[TopicPartition, frozenset[int]]  # the ISR members that have registered again

WHY: Final = "brokers restarted while there was no controller"


async def restarted_members(cluster: Cluster) -> Restarted:
    """Call this right after the states were read."""
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
    """Keep only ISR members that did not restart. If there are none, elect the longest log."""
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
