"""Finds brokers that restarted while there was no controller.

When a broker goes, or returns with another broker epoch, the controller takes it out of the ISR of its partitions. If
the controller is lost at the same moment, the next one finds the broker registered and its partitions unchanged. A
broker with a replaced disk would then lead with an empty log, and its followers would truncate theirs.

The tree shows the restart. A broker is registered again at every start, and the zxid of the registration is its broker
epoch. The controller writes the epochs of the ISR members, as far as it knows them, beside the ISR. So an ISR member
with another epoch has registered since it was in sync. Example, in zxids:

    100  broker 2 registers        110  state of t-0: leader 1, ISR [1]; broker 2 has caught up
    120  broker 2 is killed        130  broker 2 registers
    135  the controller has not heard of that yet, and writes what the leader asks for: ISR [1, 2], epochs {2: 100, …}
    140  the next controller: 130 > 100, so broker 2 is not known to be in sync

Apache Kafka and older versions of ixion write states without epochs. Then the zxid of the state takes their place: a
member that has registered after the state was written is not known to be in sync. That does not see the case above,
where the state was written after the registration.

The broker leaves the ISR, fetches from the next leader, and joins the ISR again. There are two exceptions:

- The broker says that its logs have kept everything since that epoch or an earlier one (`log.kept`): its process was
  killed, or only its session expired. It stays in the ISR: the members that did not register again may be dead, and
  this one may be the only replica that has everything. Apache Kafka's brokers do not say it.
- No live member is left that did not register again: the longest log leads, whatever they say. There is no leader
  until all of them have said where their logs end; and if none of them says that it has kept its logs, until those that
  are gone are back (`witnesses`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from ixion.broker.controller.cluster import elections
from ixion.broker.controller.cluster.batch import Batch
from ixion.broker.controller.cluster.cluster import Cluster
from ixion.broker.controller.cluster.leadership import NO_LEADER, Leadership
from ixion.broker.controller.cluster.partition_machine import elect, elect_furthest, wait_for
from ixion.broker.controller.cluster.states import PartitionPhase
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.cluster.witnesses import awaited, has_kept, needed
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Pauses


class Again(NamedTuple):
    """The ISR members of a partition that have registered again since they were in sync."""

    all: frozenset[int]
    doubtful: frozenset[int]  # those that do not say that they have kept their logs


Restarted = dict[TopicPartition, Again]

WHY: Final = "brokers restarted while there was no controller"


async def restarted_members(cluster: Cluster) -> Restarted:
    """Call this right after the states were read."""
    found: Restarted = {}
    pauses = Pauses()
    for key, known in cluster.leaderships.items():
        await pauses.pause()
        younger: list[int] = []
        doubtful: list[int] = []
        for broker in known.isr:
            member = cluster.brokers.get(broker)
            if member is None:
                continue
            if member.epoch > known.epochs[broker]:
                younger.append(broker)
            if not has_kept(known, member):
                doubtful.append(broker)
        if younger:
            found[key] = Again(frozenset(younger), frozenset(doubtful))
    return found


async def distrust(term: Term, batch: Batch, restarted: Restarted) -> None:
    """Keep only ISR members that did not restart or kept their logs. If all restarted, elect the longest log."""
    cluster = term.cluster
    others: list[TopicPartition] = []
    none_left: list[TopicPartition] = []
    pauses = Pauses()
    for key, again in restarted.items():
        await pauses.pause()
        known = cluster.leaderships.get(key)
        if known is not None:
            ran_on = any(each in known.isr and each not in again.all for each in cluster.online(key))
            ran_on = ran_on and known.leader != NO_LEADER  # else they wait for each other already
            (others if ran_on else none_left).append(key)

    def rule(key: TopicPartition, known: Leadership) -> Leadership | None:
        return elections.without_restarted(cluster.replicas(key), known, cluster.online(key), restarted[key].doubtful)

    await elect(term, batch, others, rule, WHY)
    present = [key for key in none_left if not awaited(cluster, key, cluster.leaderships[key])]
    silent = await elect_furthest(term, batch, present, WHY)
    await wait_without_leader(term, batch, none_left, silent)


async def wait_without_leader(term: Term, batch: Batch, keys: Sequence[TopicPartition], silent: set[int]) -> None:
    """Until every live witness has said where its log ends, and until one is back that surely has every record: one
    with an empty disk must not lead meanwhile."""
    cluster = term.cluster
    unknown: set[int] = set()
    led: list[TopicPartition] = []
    for key in keys:
        known = cluster.leaderships.get(key)
        if known is None:
            continue
        members = silent.intersection(needed(cluster, key, known))
        if (members and len(cluster.online(key)) > 1) or awaited(cluster, key, known):
            unknown |= members
            if known.leader != NO_LEADER:
                led.append(key)
    await elect(term, batch, led, lambda _, known: known.next(NO_LEADER, known.isr), WHY)
    for key in led:
        cluster.enter(key, PartitionPhase.OFFLINE)
    wait_for(term, unknown)
