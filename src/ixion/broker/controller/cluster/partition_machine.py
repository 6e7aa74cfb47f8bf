"""Moves partitions between their phases: creates their states, elects their leaders, writes both to the tree."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from ixion.broker.controller.cluster import elections
from ixion.broker.controller.cluster.batch import Batch
from ixion.broker.controller.cluster.cluster import Cluster
from ixion.broker.controller.cluster.leadership import NO_LEADER, Leadership, state_of
from ixion.broker.controller.cluster.registered import registered_brokers
from ixion.broker.controller.cluster.states import PartitionPhase
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.cluster.witnesses import awaited, needed, settled
from ixion.broker.controller.door import LogEnds
from ixion.broker.metadata import paths
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.node import Create
from ixion.broker.metadata.topic_node import encode_partition_state
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Pauses

logger = logging.getLogger(__name__)

Rule = Callable[[TopicPartition, Leadership], Leadership | None]

SHOWN: Final = 20  # moved leaders that get a log line each


async def create_states(term: Term, batch: Batch, keys: Sequence[TopicPartition]) -> list[TopicPartition]:
    """NEW -> ONLINE: elect first leaders. Returns the partitions that got one; without a live replica they stay NEW."""
    cluster = term.cluster
    made: dict[TopicPartition, Leadership] = {}
    pauses = Pauses()
    for key in keys:
        await pauses.pause()
        first = elections.first_leadership(cluster.replicas(key), cluster.online(key))
        if first is None:
            logger.warning("%s-%d has no leader yet: none of its replicas lives", *key)
        else:
            made[key] = first
    epoch = term.tree.controller_epoch
    nodes = [Create(paths.partitions(name)) for name in dict.fromkeys(name for name, _ in made)]
    for (name, number), first in made.items():
        await pauses.pause()
        nodes.append(Create(paths.partition(name, number)))
        data = encode_partition_state(state_of(settled(cluster, (name, number), first, 1), epoch))
        nodes.append(Create(paths.partition_state(name, number), data))
    await term.tree.create_all(nodes)
    # An earlier controller may have written some of the states before it stopped: those stay.
    found = await term.tree.read_states(list(made))
    created = []
    for key in made:
        await pauses.pause()
        known = found.get(key)
        if isinstance(known, Leadership):
            cluster.leaderships[key] = known
            cluster.enter(key, PartitionPhase.ONLINE)
            batch.lead(cluster.replicas(key).all, key, is_new=True)
            created.append(key)
    return created


async def elect(
    term: Term, batch: Batch, keys: Iterable[TopicPartition], rule: Rule, why: str
) -> dict[TopicPartition, Leadership | None]:
    """-> ONLINE: elect by `rule` and write the leaders to the tree. Returns each outcome; None without a leader."""
    cluster = term.cluster
    outcomes: dict[TopicPartition, Leadership | None] = {}
    pending = list(keys)
    pauses = Pauses()
    moved = 0
    while pending:
        wanted: dict[TopicPartition, Leadership] = {}
        for key in pending:
            await pauses.pause()
            known = cluster.leaderships.get(key)
            after = None if known is None else rule(key, known)
            if after is None:
                outcomes[key] = None
            else:
                wanted[key] = after
        written = await write_states(term, wanted)
        for key, after in written.items():
            await pauses.pause()
            before = cluster.leaderships[key]
            cluster.leaderships[key] = after
            cluster.enter(key, PartitionPhase.ONLINE)
            batch.lead(cluster.replicas(key).all, key)
            outcomes[key] = after
            moved += before.leader != after.leader
            term.figures.elected(before, after, why)
            if before.leader != after.leader and moved <= SHOWN:
                logger.info(
                    "%s-%d: leader %d after %d, leader epoch %d, in sync %s: %s",
                    *(*key, after.leader, before.leader, after.leader_epoch, list(after.isr), why),
                )
        pending = [key for key in wanted if key not in written]
        await refresh(term, pending)
    if moved > SHOWN:
        logger.info("%d leaders moved in all: %s", moved, why)
    return outcomes


async def write_states(term: Term, wanted: Mapping[TopicPartition, Leadership]) -> dict[TopicPartition, Leadership]:
    """Write decisions to the tree, with the witnesses that follow from them. Returns those that were written."""
    cluster = term.cluster
    least = {name: term.min_isr(name) for name in dict.fromkeys(name for name, _ in wanted)}
    shared: dict[tuple[tuple[int, int], ...], Mapping[int, int]] = {}  # most have the epochs of another one
    states: dict[TopicPartition, Leadership] = {}
    pauses = Pauses()
    for key, after in wanted.items():
        await pauses.pause()
        state = settled(cluster, key, after, least[key[0]])
        states[key] = replace(state, epochs=shared.setdefault(tuple(state.epochs.items()), state.epochs))
    return await term.tree.write_states(states)


async def refresh(term: Term, keys: Sequence[TopicPartition]) -> None:
    """Read states again whose version in the tree is not the one we know."""
    found = await term.tree.read_states(keys)
    for key in keys:
        known = found.get(key)
        if isinstance(known, Leadership):
            term.cluster.leaderships[key] = known
        else:
            term.cluster.leaderships.pop(key, None)
            if isinstance(known, CorruptNodeError):
                logger.error("%s-%d stays without a leader: %s", *key, known)


async def bring_online(term: Term, batch: Batch, keys: Iterable[TopicPartition] | None = None) -> None:
    """Elect leaders for all partitions (or `keys`) that have none: NEW and OFFLINE ones."""
    cluster = term.cluster
    wanted = [key for key in (cluster.all_keys() if keys is None else keys) if key[0] not in cluster.doomed]
    await create_states(term, batch, [key for key in wanted if cluster.phase(key) is PartitionPhase.NEW])
    waiting = await elect_most(term, batch, [key for key in wanted if cluster.phase(key) is PartitionPhase.OFFLINE])
    offline = [key for key in wanted if cluster.phase(key) is PartitionPhase.OFFLINE and key not in waiting]
    outcomes = await elect_offline(term, batch, offline, unclean=False, why="its leader was lost")
    left = [key for key, found in outcomes.items() if found is None and cluster.online(key)]
    allowed = {name: await term.is_unclean_allowed(name) for name in dict.fromkeys(name for name, _ in left)}
    unclean = [key for key in left if allowed[key[0]]]
    await elect_offline(term, batch, unclean, unclean=True, why="no in-sync replica lives; unclean election")


async def without_absent(term: Term, batch: Batch, keys: Sequence[TopicPartition]) -> set[TopicPartition]:
    """The partitions whose live witnesses may have lost records, while others are gone (see `witnesses`). They wait for
    these, unless unclean elections are allowed: then the longest live log leads."""
    cluster = term.cluster
    waiting: set[TopicPartition] = set()
    absent: set[int] = set()
    for key in keys:
        gone = awaited(cluster, key, cluster.leaderships[key])
        if gone:
            waiting.add(key)
            absent.update(gone)
    allowed = {name: await term.is_unclean_allowed(name) for name in dict.fromkeys(name for name, _ in waiting)}
    unclean = [key for key in keys if key in waiting and allowed[key[0]]]
    why = "no replica lives that surely has every record; unclean election"
    await elect_longest(term, batch, unclean, why)
    left = [key for key in unclean if cluster.phase(key) is PartitionPhase.OFFLINE]
    await elect_offline(term, batch, left, unclean=True, why=why)
    waiting = {key for key in waiting if cluster.phase(key) is PartitionPhase.OFFLINE}
    if waiting and absent != term.absent:
        logger.warning(
            "%d partitions have no leader until brokers %s are back, or an unclean election is asked for: their live"
            " replicas may have lost records",
            *(len(waiting), sorted(absent)),
        )
    term.absent = absent if waiting else set()
    return waiting


async def elect_most(term: Term, batch: Batch, keys: Sequence[TopicPartition]) -> set[TopicPartition]:
    """If the last in-sync replica is back and others are alive, compare their logs before one is elected. Do the same
    if several in-sync replicas have no leader, because all of them restarted (see `restarts`).

    Returns the partitions that stay offline: witnesses are gone (`without_absent`), or did not answer. A broker cannot
    learn that it leads before it answers, and another one may have more records.
    """
    cluster = term.cluster
    doubtful: dict[TopicPartition, list[int]] = {}  # with the live replicas that must answer
    suspect = [key for key in keys if is_suspect(cluster, key)]
    absent = await without_absent(term, batch, suspect)
    for key in suspect:
        if key not in absent and cluster.phase(key) is PartitionPhase.OFFLINE:
            doubtful[key] = needed(cluster, key, cluster.leaderships[key])
    why = "the last replica in sync came back with less than this one has"
    ready = [key for key, members in doubtful.items() if not term.silent.intersection(members)]
    silent = await elect_furthest(term, batch, ready, why)
    wait_for(term, silent.intersection(chain.from_iterable(doubtful.values())))
    return absent | {key for key, members in doubtful.items() if term.silent.intersection(members)}


def is_suspect(cluster: Cluster, key: TopicPartition) -> bool:
    """Whether the live ISR members of an offline partition may have restarted since they were in sync."""
    known = cluster.leaderships.get(key)
    if known is None or (len(known.isr) > 1 and known.leader != NO_LEADER):
        return False
    return any(broker in known.isr for broker in cluster.online(key))


def wait_for(term: Term, brokers: Iterable[int]) -> None:
    """Elect leaders for offline partitions again when these brokers answer where their logs end."""
    for broker in sorted(set(brokers) - term.silent):
        logger.warning("partitions have no leader until broker %d answers where its logs end", broker)
        term.once_answered(broker)


async def elect_furthest(term: Term, batch: Batch, keys: Sequence[TopicPartition], why: str) -> set[int]:
    """Ask every live replica where its log ends, and elect the one with the longest log, once all that must answer have
    (`needed`). Returns the brokers that did not answer."""
    cluster = term.cluster
    found = await log_ends(term, keys)
    silent = {broker for broker, ends in found.items() if ends is None}

    def rule(key: TopicPartition, known: Leadership) -> Leadership | None:
        if silent.intersection(needed(cluster, key, known)):
            return None
        return elections.with_most(cluster.replicas(key), known, cluster.online(key), ends_of(key, found))

    if found:
        await elect(term, batch, keys, rule, why)
    return silent


async def elect_longest(term: Term, batch: Batch, keys: Sequence[TopicPartition], why: str) -> None:
    """Unclean: elect the longest log of the replicas that answer, in sync or not."""
    found = await log_ends(term, keys)

    def rule(key: TopicPartition, known: Leadership) -> Leadership | None:
        return elections.longest(term.cluster.replicas(key), known, term.cluster.online(key), ends_of(key, found))

    await elect(term, batch, keys, rule, why)


async def log_ends(term: Term, keys: Sequence[TopicPartition]) -> dict[int, LogEnds | None]:
    """Where the logs of all live replicas end, of partitions with at least two; None for a broker that is silent.

    An answer does not say which life of a broker gave it: a broker that has lost its logs may have registered again
    since the controller looked. So the registrations are read afterwards, and such an answer does not count.
    """
    asked: dict[int, list[TopicPartition]] = {}
    for key in keys:
        online = term.cluster.online(key)
        if len(online) > 1:
            for broker in online:
                asked.setdefault(broker, []).append(key)
    if not asked:
        return {}
    found = await term.channels.log_ends(asked)
    await term.tree.write([])  # what is read after a write is not older than the answers
    now, known = await registered_brokers(term.session), term.cluster.brokers
    same = {broker for broker in asked if broker in now and now[broker].epoch == known[broker].epoch}
    return {broker: found.get(broker) if broker in same else None for broker in asked}


def ends_of(key: TopicPartition, found: Mapping[int, LogEnds | None]) -> dict[int, tuple[int, int]]:
    return {broker: ends[key] for broker, ends in found.items() if ends is not None and key in ends}


async def elect_offline(
    term: Term, batch: Batch, keys: Sequence[TopicPartition], *, unclean: bool, why: str
) -> dict[TopicPartition, Leadership | None]:
    cluster = term.cluster

    def rule(key: TopicPartition, known: Leadership) -> Leadership | None:
        return elections.after_leader_loss(cluster.replicas(key), known, cluster.online(key), unclean)

    return await elect(term, batch, keys, rule, why)


async def next_epoch(term: Term, batch: Batch, keys: Sequence[TopicPartition], why: str) -> None:
    """Keep the leaders but raise the leader epoch, so that brokers take the new assignment."""
    await elect(term, batch, keys, lambda _, known: known.next(known.leader, known.isr), why)
