"""Logs that moved replicas leave behind, until their brokers have deleted them.

When a partition has moved, StopReplica tells the brokers that it has left to delete its log. Such a broker may be gone,
or dead although its session has not expired yet, or the controller may be lost before its request arrives. So the topic
node names these brokers until each of them has confirmed the deletion, and they are asked again whenever they register
and whenever a controller takes over. A move does not wait for them: it is often made because a broker is gone for good.

Apache Kafka's controller does not remember them. It ignores the names and writes the topic node without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from ixion.broker.controller.cluster.batch import Batch
from ixion.broker.controller.cluster.cluster import Topic
from ixion.broker.controller.cluster.term import Term
from ixion.broker.metadata import paths
from ixion.broker.metadata.node import Set
from ixion.broker.metadata.topic_node import Replicas, TopicNode, encode_topic
from ixion.language.model.topic_partition import TopicPartition


def after(before: Replicas, replicas: Replicas) -> Replicas:
    """The new replicas of a partition, with those that the change leaves behind."""
    behind = [broker for broker in dict.fromkeys((*before.leftover, *before.all)) if broker not in replicas.all]
    return replicas._replace(leftover=tuple(behind))


def ask(term: Term, batch: Batch, keys: Iterable[TopicPartition], brokers: Collection[int]) -> None:
    """Ask these of the brokers that partitions have left to delete their logs."""
    cluster = term.cluster
    for key in keys:
        for broker in cluster.replicas(key).leftover:
            if broker in brokers and broker in cluster.brokers and key[0] not in cluster.doomed:
                batch.stop((broker,), key, delete=True)
                known = cluster.leaderships.get(key)
                term.asked[(*key, broker)] = -1 if known is None else known.leader_epoch


async def remind(term: Term, brokers: Collection[int]) -> None:
    """Ask brokers again that have registered, or that this controller finds registered."""
    batch = term.batch()
    ask(term, batch, list(term.cluster.all_keys()), brokers)
    await term.send(batch)


def confirmed(term: Term, broker: int, epochs: dict[TopicPartition, int]) -> list[TopicPartition]:
    """The partitions that are over by a broker's answer; `epochs` are those of the requests that it has carried out.

    The answer to an earlier request does not count: the replica may have come back and gone again since.
    """
    cluster = term.cluster
    return [
        key
        for key, epoch in epochs.items()
        if cluster.has(key)
        and broker in cluster.replicas(key).leftover
        and epoch >= term.asked.get((*key, broker), epoch + 1)
    ]


async def deleted(term: Term, broker: int, epochs: dict[TopicPartition, int]) -> None:
    topics: dict[str, Topic] = {}
    for key in confirmed(term, broker, epochs):
        del term.asked[(*key, broker)]
        topic = topics.setdefault(key[0], replace(term.cluster.topics[key[0]]))
        replicas = topic.partitions[key[1]]
        left = replicas._replace(leftover=tuple([each for each in replicas.leftover if each != broker]))
        topic.partitions = {**topic.partitions, key[1]: left}
    for name, topic in topics.items():
        node = TopicNode(topic_id=topic.topic_id, partitions=topic.partitions)
        await term.tree.write([Set(paths.topic(name), encode_topic(node))])
        term.cluster.topics[name].partitions = topic.partitions
