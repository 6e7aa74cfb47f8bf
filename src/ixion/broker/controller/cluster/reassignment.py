"""Moves replicas to other brokers (KIP-455), and cancels such moves.

    1  the topic node gets the old and the new replicas together, with those to be added and removed
    2  a new leader epoch announces the larger assignment to every replica; the new replicas start to fetch
    3  when every target replica is in sync (by AlterPartition of the leader), the others are stopped and deleted
    4  the topic node gets the target replicas alone, and the names of those that have not confirmed that (`leftovers`)

Only the node of step 1 still knows the old replicas, so it is written before anything else happens, and again only
after everything has happened. A controller that is elected in between continues from it. Cancelling a move is a move
back to its original replicas.
"""

from __future__ import annotations

import logging
from collections.abc import Container
from dataclasses import replace

from ixion.broker.controller.cluster import elections, leftovers
from ixion.broker.controller.cluster.batch import Batch
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.controller.cluster.partition_machine import elect, next_epoch
from ixion.broker.controller.cluster.replica_machine import add_new, delete, forget, put_offline, put_online
from ixion.broker.controller.cluster.states import PartitionPhase, ReplicaPhase
from ixion.broker.controller.cluster.term import Term
from ixion.broker.metadata import paths
from ixion.broker.metadata.node import Set
from ixion.broker.metadata.topic_node import Replicas, TopicNode, encode_topic
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


def is_moving(replicas: Replicas) -> bool:
    return bool(replicas.adding or replicas.removing)


def check(term: Term, key: TopicPartition, target: tuple[int, ...] | None, any_factor: bool) -> Replicas:
    """The assignment during the move; KafkaError if the target is not possible."""
    cluster = term.cluster
    if not cluster.has(key) or key[0] in cluster.doomed:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {key[0]}-{key[1]}")
    now = cluster.replicas(key)
    origin = tuple([broker for broker in now.all if broker not in now.adding])
    if target is None:
        if not is_moving(now):
            raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
        return with_records(term, key, leftovers.after(now, elections.reassigned_to(now, origin)))
    if not target or len(set(target)) < len(target) or any(broker < 0 for broker in target):
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{list(target)} is not a list of different brokers")
    unknown = [broker for broker in target if broker not in cluster.live]
    if unknown:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"there is no broker {unknown[0]}")
    if not any_factor and len(target) != len(elections.target_of(now)):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the partition has {len(elections.target_of(now))} replicas; {len(target)} would change the factor",
        )
    return with_records(term, key, leftovers.after(now, elections.reassigned_to(now, target)))


def with_records(term: Term, key: TopicPartition, during: Replicas) -> Replicas:
    """KafkaError if every in-sync replica would be deleted at once, as after an unclean election of a new replica.

    While there is no leader, none may be: any of them may be the only one with all records (see `restarts`).
    """
    known = term.cluster.leaderships.get(key)
    is_offline = term.cluster.phase(key) is PartitionPhase.OFFLINE
    if known is not None and is_offline and any(broker not in during.all for broker in known.witnesses):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"the partition has no leader, and any of {list(known.witnesses)} may have records that the others lack",
        )
    if known is not None and not any(broker in during.all for broker in known.isr):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"no other replica has the records of brokers {list(known.isr)}; let the present move end first",
        )
    return during


async def begin(term: Term, key: TopicPartition, during: Replicas) -> None:
    cluster = term.cluster
    before = cluster.replicas(key)
    if during == before:
        return
    await write_replicas(term, key, during)
    dropped = [broker for broker in before.all if broker not in during.all]
    if dropped:  # replicas that the replaced move was adding
        await drop(term, key, dropped)
    logger.info("%s-%d: replicas %s -> %s", *key, list(before.all), list(elections.target_of(during)))
    await advance(term, key)


async def finish_if_in_sync(term: Term, key: TopicPartition) -> bool:
    """Finish the move if every target replica is in sync, and one of them lives.

    Not while the partition waits for in-sync replicas to say where their logs end (see `restarts`): the target may have
    an empty disk, and those that are deleted the records.
    """
    cluster = term.cluster
    known = cluster.leaderships.get(key)
    if cluster.phase(key) is PartitionPhase.OFFLINE:
        return False
    target = elections.target_of(cluster.replicas(key))
    lives = any(broker in target for broker in cluster.online(key))
    if known is None or not lives or not elections.is_reassigned(cluster.replicas(key), known):
        return False
    await finish(term, key)
    return True


async def advance(term: Term, key: TopicPartition) -> None:
    """Finish the move if possible; else make sure that the brokers with new replicas know of it."""
    if await finish_if_in_sync(term, key):
        return
    cluster = term.cluster
    replicas = cluster.replicas(key)
    known = cluster.leaderships.get(key)
    batch = term.batch()
    if known is not None and known.leader in cluster.brokers:
        await next_epoch(term, batch, [key], "the replicas are being moved")
    new = [(*key, broker) for broker in replicas.adding]
    add_new(term, batch, [each for each in new if cluster.replica_phase(each) is ReplicaPhase.NONE])
    await term.send(batch)


async def finish(term: Term, key: TopicPartition) -> None:
    cluster = term.cluster
    during = cluster.replicas(key)
    target = elections.target_of(during)
    batch = term.batch()
    put_online(term, batch, [(*key, broker) for broker in during.adding])
    # From here on the brokers see only the target replicas; the tree keeps the others until they have been stopped.
    finished = leftovers.after(during, Replicas(all=target))
    cluster.topics[key[0]].partitions[key[1]] = finished
    known = cluster.leaderships[key]
    online = cluster.online(key)
    if known.leader in target and known.leader in online:
        await next_epoch(term, batch, [key], "the replicas were moved")
    else:
        await elect_target(term, batch, key)
    await term.send(batch)
    await drop(term, key, [broker for broker in during.all if broker not in target])
    await write_replicas(term, key, finished)
    batch = term.batch()
    batch.show(cluster.brokers, (key,))
    await term.send(batch)
    logger.info("%s-%d: the replicas are on %s now", *key, list(target))


async def elect_target(term: Term, batch: Batch, key: TopicPartition) -> None:
    cluster = term.cluster

    def rule(key: TopicPartition, known: Leadership) -> Leadership | None:
        return elections.for_reassignment(cluster.replicas(key), known, cluster.online(key))

    await elect(term, batch, [key], rule, "its leader was moved away")


async def drop(term: Term, key: TopicPartition, brokers: list[int]) -> None:
    """Take replicas that no longer belong to the partition out of the ISR, stop and delete them.

    They are in its leftovers already.
    """
    gone = [(*key, broker) for broker in brokers]
    gone = [each for each in gone if term.cluster.replica_phase(each) is not ReplicaPhase.NONE]
    batch = term.batch()
    await put_offline(term, batch, gone, for_good=True)
    delete(term, batch, gone)
    leftovers.ask(term, batch, (key,), brokers)
    await term.send(batch)
    forget(term, gone)


async def write_replicas(term: Term, key: TopicPartition, replicas: Replicas) -> None:
    topic = term.cluster.topics[key[0]]
    after = replace(topic, partitions={**topic.partitions, key[1]: replicas})
    node = TopicNode(topic_id=after.topic_id, partitions=after.partitions)
    await term.tree.write([Set(paths.topic(after.name), encode_topic(node))])
    topic.partitions[key[1]] = replicas


async def resume(term: Term, newcomers: Container[int] | None = None) -> None:
    """Continue moves that an earlier controller began, or with `newcomers` those that these brokers take part in."""
    for key in list(term.cluster.all_keys()):
        replicas = term.cluster.replicas(key)
        if not is_moving(replicas) or key[0] in term.cluster.doomed:
            continue
        if newcomers is None or any(broker in newcomers for broker in replicas.all):
            await advance(term, key)
