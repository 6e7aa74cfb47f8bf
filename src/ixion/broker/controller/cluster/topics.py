"""Creates and deletes topics, and adds partitions to them, in a cluster of several brokers.

The topic node is the commit point: without it nothing of the topic counts, and with it any controller can finish the
creation. Its settings are written in the same transaction; the states of its partitions follow, thousands at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from ixion.broker.controller.cluster import deletion
from ixion.broker.controller.cluster.cluster import Topic
from ixion.broker.controller.cluster.fenced_tree import MAX_NODE
from ixion.broker.controller.cluster.partition_machine import bring_online
from ixion.broker.controller.cluster.replica_machine import add_new, put_online
from ixion.broker.controller.cluster.states import PartitionPhase
from ixion.broker.controller.cluster.take_over import follow_deletions, read_topics
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.configs import warn_without_effect
from ixion.broker.controller.planning import (
    Names,
    NewTopic,
    check_partitions_of_request,
    partitions_of,
    plan_growth,
    plan_topic,
)
from ixion.broker.controller.topic_nodes import topic_node
from ixion.broker.controller.topics import Charge, TopicOutcome, charged, free, refusal_of
from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import encode_config
from ixion.broker.metadata.errors import NodeExistsError
from ixion.broker.metadata.image import PartitionImage, TopicImage
from ixion.broker.metadata.node import Create, Operation, Set
from ixion.broker.metadata.topic_node import Replicas, TopicNode, encode_topic
from ixion.config.cluster_settings import DELETE_TOPIC_ENABLE
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Steps, in_turns

logger = logging.getLogger(__name__)


class ClusterTopics:
    def __init__(self, active: Callable[[], Term]) -> None:
        """`active` returns the present term; KafkaError NOT_CONTROLLER if another broker is the controller."""
        self._active = active

    async def caught_up(self) -> None:
        """Returns when this broker's metadata shows every topic that the controller knows.

        A broker that has just started or was just elected shows none. A client that repeats DeleteTopics takes "unknown
        topic" for the success of its first attempt, so that answer must not come from such a broker.
        """
        term = self._active()
        await term.run(nothing)  # after the take-over
        await term.channels.settled(term.sender.controller_id)

    async def create(
        self, wanted: Sequence[NewTopic], validate_only: bool = False, charge: Charge = free
    ) -> list[TopicOutcome]:
        """An outcome for each topic, in their order. When this returns, this broker's metadata shows the topics."""
        term = self._active()
        outcomes = await term.run(lambda: self._create(term, wanted, validate_only, charge))
        await term.channels.settled(term.sender.controller_id)
        return outcomes

    async def _create(
        self, term: Term, wanted: Sequence[NewTopic], validate_only: bool, charge: Charge
    ) -> list[TopicOutcome]:
        outcomes = [TopicOutcome(name=wish.name) for wish in wanted]
        await in_turns(plan(term, wanted, outcomes, free if validate_only else charge))
        if validate_only:
            return outcomes
        for outcome in outcomes:
            if outcome.topic is None:
                continue
            try:
                await write_topic(term, outcome.topic)
            except KafkaError as error:
                outcome.code, outcome.message, outcome.topic = error.code, error.message, None
        await take_new(term, [outcome.name for outcome in outcomes if outcome.topic is not None])
        return outcomes

    async def delete(
        self, names: Sequence[str], ids: Mapping[str, bytes] | None = None, charge: Charge = free
    ) -> list[TopicOutcome]:
        """Delete by name. A topic in `ids` must still have that id: another of the same name may have been created
        meanwhile.

        Returns when the topics are deleted, or when a missing broker with a replica holds the deletion up. A topic that
        is already being deleted is not waited for: a client may repeat that for as long as a broker does not answer.
        """
        term = self._active()
        before: set[str] = set()
        outcomes = await term.run(lambda: self._delete(term, names, ids, charge, before))
        gone = [outcome.name for outcome in outcomes if outcome.code is ErrorCode.NONE and outcome.name not in before]

        def is_over() -> bool:
            return all(name not in term.cluster.doomed or deletion.is_stuck(term, name) for name in gone)

        await term.deletions.until(is_over)
        await term.channels.settled(term.sender.controller_id)
        return outcomes

    async def _delete(
        self, term: Term, names: Sequence[str], ids: Mapping[str, bytes] | None, charge: Charge, before: set[str]
    ) -> list[TopicOutcome]:
        """`before` gets the topics that are already being deleted."""
        outcomes = [TopicOutcome(name=name) for name in names]
        before |= term.cluster.doomed & set(names)
        doomed = []
        for outcome in outcomes:
            topic = term.cluster.topics.get(outcome.name)
            if topic is None:
                outcome.code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif ids is not None and ids.get(outcome.name, topic.topic_id) != topic.topic_id:
                outcome.code = ErrorCode.UNKNOWN_TOPIC_ID
            elif not term.config.current[DELETE_TOPIC_ENABLE]:
                outcome.code = ErrorCode.TOPIC_DELETION_DISABLED
            elif charged(outcome, charge, len(topic.partitions)):
                doomed.append(outcome.name)
        await term.tree.create_all([Create(paths.delete_topic(name)) for name in doomed])
        await deletion.begin(term, doomed)
        return outcomes

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignment: Sequence[tuple[int, ...]] | None,
        validate_only: bool = False,
        charge: Charge = free,
    ) -> None:
        """Bring a topic to `count` partitions. KafkaError if that is not possible."""
        term = self._active()
        await term.run(lambda: self._grow(term, name, count, assignment, validate_only, charge))
        await term.channels.settled(term.sender.controller_id)

    async def _grow(
        self,
        term: Term,
        name: str,
        count: int,
        assignment: Sequence[tuple[int, ...]] | None,
        validate_only: bool,
        charge: Charge,
    ) -> None:
        cluster = term.cluster
        topic = None if name in cluster.doomed else cluster.topics.get(name)
        known = {} if topic is None else {name: as_image(topic)}
        if topic is not None and any(each.adding or each.removing for each in topic.partitions.values()):
            raise KafkaError(ErrorCode.REASSIGNMENT_IN_PROGRESS, f"replicas of topic '{name}' are being moved")
        live = sorted(cluster.live)
        added = await in_turns(plan_growth(known, name, count, assignment, live, racks_of(term)))
        if validate_only or topic is None:
            return
        charge(len(added))
        after = {**topic.partitions, **{each.number: Replicas(all=each.replicas) for each in added}}
        data = encode_topic(TopicNode(topic_id=topic.topic_id, partitions=after))
        check_size(name, len(after), data)
        await term.tree.write([Set(paths.topic(name), data)])
        topic.partitions = after
        await start_partitions(term, [(name, each.number) for each in added])

    async def follow(self, term: Term) -> None:
        """Start topics that another broker wrote: auto creation of Apache Kafka does not ask the controller."""
        names = await term.session.children(paths.TOPICS)
        await take_new(term, [name for name in names if name not in term.cluster.topics])

    async def follow_deletions(self, term: Term) -> None:
        await follow_deletions(term, await term.session.children(paths.DELETE_TOPICS))


async def nothing() -> None:
    """A change that changes nothing: it ends when all changes before it have."""


def plan(term: Term, wanted: Sequence[NewTopic], outcomes: Sequence[TopicOutcome], charge: Charge) -> Steps[None]:
    settings = term.config.current
    brokers = sorted(term.cluster.live)
    names = Names(term.cluster.topics)
    counts = [partitions_of(wish, settings) for wish in wanted]
    refused = refusal_of(lambda: check_partitions_of_request(counts))
    racks = racks_of(term)
    for wish, outcome in zip(wanted, outcomes, strict=True):
        fault = refused or refusal_of(partial(names.check, wish.name))
        if fault is not None and wish.name in term.cluster.doomed:
            fault = KafkaError(fault.code, why_doomed(term, wish.name))
        try:
            if fault is None:
                topic = yield from plan_topic(wish, brokers, settings, racks)
                check_size(wish.name, len(topic.partitions), encode_topic(topic_node(topic)))
                charge(len(topic.partitions))
                outcome.topic = topic
                names.add(wish.name)
        except KafkaError as error:
            fault = error
        if fault is not None:
            outcome.code = fault.code
            outcome.message = fault.message
        yield


def why_doomed(term: Term, name: str) -> str:
    """Clients do not see the topic any more, so "already exists" would be a riddle."""
    missing = {broker for _, _, broker in term.cluster.replicas_of(term.cluster.keys_of(name))} - set(term.cluster.live)
    awaited = (
        f"; its replicas on {', '.join(map(str, sorted(missing)))} go when these brokers are back" if missing else ""
    )
    return f"topic '{name}' is being deleted{awaited}"


def check_size(name: str, partitions: int, data: bytes) -> None:
    if len(data) > MAX_NODE:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic '{name}' with {partitions} partitions and their replicas takes {len(data)} bytes in ZooKeeper,"
            f" but a node holds at most {MAX_NODE}",
        )


async def write_topic(term: Term, topic: TopicImage) -> None:
    warn_without_effect(topic.name, topic.config)
    path, config = paths.config("topics", topic.name), encode_config(topic.config)
    exists = await term.session.exists(path) is not None
    operations: list[Operation] = [
        Set(path, config) if exists else Create(path, config),
        Create(paths.topic(topic.name), encode_topic(topic_node(topic))),
    ]
    try:
        await term.tree.write(operations)
    except NodeExistsError:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic '{topic.name}' already exists") from None


async def take_new(term: Term, names: Sequence[str]) -> None:
    """Take topics into the view whose nodes are in the tree and that the controller does not know yet."""
    keys: list[TopicPartition] = []
    for topic in await read_topics(term, names):
        term.cluster.put_topic(topic)
        keys += term.cluster.keys_of(topic.name)
    await start_partitions(term, keys)


async def start_partitions(term: Term, keys: Sequence[TopicPartition]) -> None:
    """Elect leaders for new partitions, and inform the brokers."""
    batch = term.batch()
    for key in keys:
        term.cluster.enter(key, PartitionPhase.NEW)
    replicas = term.cluster.replicas_of(keys)
    add_new(term, batch, replicas)
    await bring_online(term, batch, keys)
    put_online(term, batch, replicas)
    await term.send(batch)


def racks_of(term: Term) -> dict[int, str | None]:
    return {broker: member.registration.rack for broker, member in term.cluster.brokers.items()}


def as_image(topic: Topic) -> TopicImage:
    partitions = [
        PartitionImage(number=number, leader=-1, leader_epoch=0, isr=(), replicas=replicas.all)
        for number, replicas in topic.partitions.items()
    ]
    return TopicImage(name=topic.name, topic_id=topic.topic_id, partitions=partitions, config={})
