"""Elections by request, balancing of leaders, and controlled shutdowns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from ixion.broker.controller.cluster import elections
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.controller.cluster.partition_machine import elect, elect_longest, elect_offline
from ixion.broker.controller.cluster.reassignment import is_moving
from ixion.broker.controller.cluster.replica_machine import put_offline
from ixion.broker.controller.cluster.states import PartitionPhase
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.leaders import Outcomes
from ixion.config.cluster_settings import LEADER_IMBALANCE_PER_BROKER_PERCENTAGE
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

TAKEN_OVER_S: Final = 2.0  # a broker that stops waits so long for the new leaders


class ClusterLeaders:
    def __init__(self, active: Callable[[], Term]) -> None:
        self._active = active

    async def elect(self, keys: Sequence[TopicPartition], unclean: bool) -> Outcomes:
        """Elect preferred replicas. `unclean`: elect any live replica where there is no leader."""
        term = self._active()
        outcomes = await term.run(lambda: elect_asked(term, keys, unclean))
        await term.channels.settled(term.sender.controller_id)
        return outcomes

    async def shut_down(self, broker: int, epoch: int) -> list[TopicPartition]:
        """Move leadership away from a broker that is about to stop. Returns the partitions that it still leads.

        Returns when the new leaders lead, and the broker that stops knows them and can name them to its clients. If
        that broker is this one, its requests to the others end with it, and the new leaders would wait for the next
        controller.
        """
        term = self._active()
        left = await term.run(lambda: shut_down(term, broker, epoch))
        concerned = term.cluster.brokers.keys() - (term.cluster.stopping - {broker})
        try:
            async with asyncio.timeout(TAKEN_OVER_S):
                await asyncio.gather(*(term.channels.settled(each) for each in concerned))
        except TimeoutError:  # a broker is dead, but its session has not expired yet
            logger.info("not every broker answered within %.0f s that broker %d stops", TAKEN_OVER_S, broker)
        return left


async def elect_asked(term: Term, keys: Sequence[TopicPartition], unclean: bool) -> Outcomes:
    cluster = term.cluster
    outcomes: Outcomes = {}
    wanted = []
    for key in keys:
        known = cluster.leaderships.get(key)
        if not cluster.has(key) or key[0] in cluster.doomed:
            outcomes[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        leader = -1 if known is None or known.leader not in cluster.brokers else known.leader
        if leader >= 0 and (unclean or leader == cluster.replicas(key).all[0]):
            outcomes[key] = ErrorCode.ELECTION_NOT_NEEDED
        else:
            wanted.append(key)
    batch = term.batch()
    if unclean:
        why = "an unclean election was asked for"
        await elect_longest(term, batch, wanted, why)  # not a broker that the partition waits for
        found = {key: cluster.leaderships.get(key) for key in wanted}
        left = [key for key in wanted if cluster.phase(key) is not PartitionPhase.ONLINE]
        found |= await elect_offline(term, batch, left, unclean=True, why=why)
        refused = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    else:
        found = await elect_preferred(term, wanted, "an election of the preferred replica was asked for")
        refused = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    await term.send(batch)
    for key, after in found.items():
        outcomes[key] = refused if after is None else ErrorCode.NONE
    return outcomes


async def elect_preferred(
    term: Term, keys: Sequence[TopicPartition], why: str
) -> dict[TopicPartition, Leadership | None]:
    cluster = term.cluster

    def rule(key: TopicPartition, known: Leadership) -> Leadership | None:
        if cluster.phase(key) is PartitionPhase.OFFLINE:
            return None  # it waits until its in-sync replicas say where their logs end
        return elections.for_preferred(cluster.replicas(key), known, cluster.online(key))

    batch = term.batch()
    found = await elect(term, batch, keys, rule, why)
    await term.send(batch)
    return found


def unbalanced(term: Term, percentage: int) -> list[TopicPartition]:
    """Partitions whose leadership should go back to the preferred replica, of brokers that lead too few of theirs.

    If broker 1 leads eight of the ten partitions that prefer it, 20 % are out of place.
    """
    cluster = term.cluster
    preferring: dict[int, list[TopicPartition]] = {}
    for key in cluster.all_keys():
        if key[0] not in cluster.doomed and key in cluster.leaderships:
            preferring.setdefault(cluster.replicas(key).all[0], []).append(key)
    wanted: list[TopicPartition] = []
    for broker, keys in preferring.items():
        misplaced = [key for key in keys if cluster.leaderships[key].leader != broker]
        if broker not in cluster.live or len(misplaced) * 100 <= len(keys) * percentage:
            continue
        wanted += [
            key
            for key in misplaced
            if broker in cluster.leaderships[key].isr
            and broker in cluster.online(key)
            and not is_moving(cluster.replicas(key))
        ]
    return wanted


async def balance(term: Term) -> None:
    """Move leadership back to preferred replicas, for brokers that lead too few of theirs."""
    keys = unbalanced(term, term.config.current[LEADER_IMBALANCE_PER_BROKER_PERCENTAGE])
    if keys:
        await elect_preferred(term, keys, "leadership goes back to the preferred replica")


async def shut_down(term: Term, broker: int, epoch: int) -> list[TopicPartition]:
    """Move leadership to other replicas where possible, and take the broker out of the ISR of what it follows."""
    cluster = term.cluster
    member = cluster.brokers.get(broker)
    if member is None:
        raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker} is not registered")
    if epoch not in (-1, member.epoch):
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"broker {broker} is registered with epoch {member.epoch}")
    cluster.stopping.add(broker)
    keys = [
        (name, number)
        for name, number, _ in cluster.replicas_on((broker,))
        if name not in cluster.doomed
        and (name, number) in cluster.leaderships
        and len(cluster.replicas((name, number)).all) > 1
    ]
    led = [key for key in keys if cluster.leaderships[key].leader == broker]
    followed = [key for key in keys if cluster.leaderships[key].leader != broker]

    def rule(key: TopicPartition, known: Leadership) -> Leadership | None:
        reachable = cluster.online(key, with_stopping=True)
        return elections.for_shutdown(cluster.replicas(key), known, reachable, cluster.stopping)

    batch = term.batch()
    await elect(term, batch, led, rule, f"broker {broker} shuts down")
    await put_offline(term, batch, [(*key, broker) for key in followed])
    await term.send(batch)
    left = [key for key in led if cluster.leaderships[key].leader == broker]
    logger.info("broker %d shuts down: %d leaders moved, %d left", broker, len(led) - len(left), len(left))
    return left
