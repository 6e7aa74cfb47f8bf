"""The first work of a new controller: it reads the tree, informs every broker, and finishes what was begun.

A node that cannot be read is logged with its path, and the controller continues with the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from ixion.broker.controller.cluster import deletion, leftovers, reassignment
from ixion.broker.controller.cluster.cluster import Topic
from ixion.broker.controller.cluster.fenced_tree import IN_FLIGHT
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.controller.cluster.partition_machine import bring_online, next_epoch
from ixion.broker.controller.cluster.registered import registered_brokers
from ixion.broker.controller.cluster.replica_machine import put_offline, put_online
from ixion.broker.controller.cluster.restarts import distrust, restarted_members
from ixion.broker.controller.cluster.states import PartitionPhase, ReplicaPhase
from ixion.broker.controller.cluster.term import Term
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import encode_features
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import NodeExistsError, NoNodeError
from ixion.broker.metadata.node import Create, Set
from ixion.broker.metadata.topic_node import TopicNode, decode_topic, encode_topic
from ixion.language.model.ids import new_id
from ixion.timer.turns import Pauses

logger = logging.getLogger(__name__)


async def take_over(term: Term, unclean: bool) -> None:
    """`unclean`: this broker did not stop cleanly, so the partitions that it leads get a new leader epoch."""
    cluster = term.cluster
    if await term.session.exists(paths.FEATURES) is None:
        try:
            await term.tree.write([Create(paths.FEATURES, encode_features({}))])
        except NodeExistsError:
            pass
    for folder in (paths.ISR_CHANGES, paths.LOG_DIR_EVENTS):
        await term.tree.delete_all([f"{folder}/{name}" for name in await term.session.children(folder)])
    cluster.brokers.update(await registered_brokers(term.session))
    for topic in await read_topics(term, await term.session.children(paths.TOPICS)):
        cluster.put_topic(topic)
    await read_leaderships(term)
    restarted = await restarted_members(cluster)
    for member in cluster.brokers.values():
        term.channels.open(member)
    # Brokers must know each other before the first LeaderAndIsr names one of them as a leader.
    batch = term.batch()
    batch.show(cluster.brokers, ())
    await term.send(batch)
    doomed = await term.session.children(paths.DELETE_TOPICS)
    batch = term.batch()
    keys = [key for key in cluster.all_keys() if key[0] not in doomed]
    batch.show(cluster.brokers, keys)
    replicas = cluster.replicas_of(keys)
    put_online(term, batch, [replica for replica in replicas if replica[2] in cluster.brokers])
    # Before any other write: a state has the present broker epochs, and so hides the restart from the next controller.
    await distrust(term, batch, {key: brokers for key, brokers in restarted.items() if key[0] not in doomed})
    await put_offline(term, batch, [replica for replica in replicas if replica[2] not in cluster.brokers])
    await bring_online(term, batch, keys)
    if unclean:
        own = term.sender.controller_id
        led = [key for key in keys if key in cluster.leaderships and cluster.leaderships[key].leader == own]
        await next_epoch(term, batch, led, "its broker did not stop cleanly")
    await term.send(batch)
    await reassignment.resume(term)
    await leftovers.remind(term, cluster.brokers)
    await follow_deletions(term, doomed)
    logger.info(
        "controller %d, epoch %d: %d brokers, %d topics, %d partitions",
        *(term.sender.controller_id, term.sender.controller_epoch),
        *(len(cluster.brokers), len(cluster.topics), len(keys)),
    )


async def read_topics(term: Term, names: Sequence[str]) -> list[Topic]:
    """Read the topics. A topic without an id, made by an old tool, gets one."""

    async def read(name: str) -> Topic | None:
        try:
            node = decode_topic(name, (await term.session.get(paths.topic(name))).data)
        except NoNodeError:
            return None
        except CorruptNodeError as error:
            logger.error("the topic at %s is ignored: %s", paths.topic(name), error)
            return None
        topic_id = node.topic_id
        if topic_id is None:
            topic_id = new_id()
            data = encode_topic(TopicNode(topic_id=topic_id, partitions=node.partitions))
            await term.tree.write([Set(paths.topic(name), data)])
        return Topic(name=name, topic_id=topic_id, partitions=dict(sorted(node.partitions.items())))

    topics: list[Topic] = []
    for start in range(0, len(names), IN_FLIGHT):
        found = await asyncio.gather(*[read(name) for name in names[start : start + IN_FLIGHT]])
        topics += [topic for topic in found if topic is not None]
    return topics


async def read_leaderships(term: Term) -> None:
    """Read the leaders from the tree, and set the phases of partitions and replicas from them."""
    cluster = term.cluster
    keys = list(cluster.all_keys())
    found = await term.tree.read_states(keys)
    pauses = Pauses()
    for key in keys:
        await pauses.pause()
        state = found.get(key)
        if isinstance(state, Leadership):
            cluster.leaderships[key] = state
            lives = state.leader in cluster.brokers
            cluster.found_partition(key, PartitionPhase.ONLINE if lives else PartitionPhase.OFFLINE)
        elif state is None:
            cluster.found_partition(key, PartitionPhase.NEW)
        else:
            logger.error("the partition at %s has no leader: %s", paths.partition_state(*key), state)
            cluster.found_partition(key, PartitionPhase.OFFLINE)
        for broker in cluster.replicas(key).all:
            phase = ReplicaPhase.ONLINE if broker in cluster.brokers else ReplicaPhase.OFFLINE
            cluster.found_replica((*key, broker), phase)


async def follow_deletions(term: Term, names: Sequence[str]) -> None:
    """Delete the topics that are marked for deletion. A mark without a topic is removed."""
    unknown = [name for name in names if name not in term.cluster.topics]
    if unknown:
        await term.tree.delete_all([paths.delete_topic(name) for name in unknown])
    await deletion.begin(term, names)
