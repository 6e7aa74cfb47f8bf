"""By which rule this broker spreads groups and transactional ids over the partitions of their topics.

Kafka's rule, unless older versions of ixion have stored some by theirs (`model.placement`). `/ixion_placement` says
which one the cluster uses. A broker that finds no such node decides:

    it has every partition of the internal topics, as the
    only replica, and no other broker is registered          moving, then what is misplaced is moved over, then kafka
    the same, and there are no internal topics yet           kafka
    a cluster that older versions of ixion have served       masked
    any other cluster, such as one of Apache Kafka           kafka

In a cluster that is upgraded broker by broker, old and new brokers would name different coordinators for one group. So
the new ones keep the old rule, and say so at every start. docs/cluster.md says how to move such a cluster over: its
internal topics get one replica on one broker, which is then started alone.

Two brokers that start at the same time cannot both be right about being alone. So the one that moves writes `moving`
and only then looks for others, and every broker reads the node once more after it has registered.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ixion.broker.metadata import paths
from ixion.broker.metadata.broker_node import decode_registration
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import BadVersionError, ConnectionLostError, NodeExistsError, NoNodeError
from ixion.broker.metadata.node import Node
from ixion.broker.metadata.placement_node import Placement, decode_placement, encode_placement
from ixion.broker.metadata.topic_node import TopicNode, decode_topic
from ixion.broker.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE
from ixion.broker.startup.errors import StartupError
from ixion.language.model.errors import KafkaError
from ixion.language.model.placement import PartitionOf, masked_partition_of, partition_of

if TYPE_CHECKING:
    from ixion.broker.log.log import Log
    from ixion.broker.startup.parts import Parts

logger = logging.getLogger(__name__)
MOVED: Final = (GROUP_OFFSETS, TRANSACTION_STATE)  # other internal topics were never placed in another way

RULES: Final[dict[Placement, PartitionOf]] = {
    Placement.KAFKA: partition_of,
    Placement.MASKED: masked_partition_of,
}


async def choose_placement(parts: Parts) -> None:
    """StartupError if another broker is moving groups, or if the disk fails while this one does."""
    while True:
        try:
            parts.placement = await _choose(parts)
            return
        except (NodeExistsError, BadVersionError, ConnectionLostError):
            continue  # another broker was first, or it is not known whether the node was written


async def check_placement(parts: Parts) -> None:
    """After the registration: StartupError if another broker has begun to move groups meanwhile."""
    node = await _read(parts)
    if node is not None and decode_placement(node.data) is not parts.placement:
        raise StartupError("groups were moved to other partitions while this broker started; start it again")


async def _choose(parts: Parts) -> Placement:
    node = await _read(parts)
    known = None if node is None else decode_placement(node.data)
    if known is Placement.KAFKA:
        return known
    version = None if node is None else node.stat.version
    topics = await _internal_topics(parts)
    logs = _own_logs(parts, topics)
    if logs is not None and not await _others(parts):
        return await _move_over(parts, logs, version)
    if known is Placement.MOVING:
        raise StartupError(
            "a broker was stopped while it moved groups to other partitions. Start the one that has every replica of"
            f" {' and '.join(MOVED)} first, alone, with all its log directories"
        )
    if known is None and parts.engine is None:
        known = Placement.MASKED if await _is_from_older_ixion(parts) else Placement.KAFKA
        await _write(parts, known, version)
    if known is not Placement.KAFKA:
        known = Placement.MASKED
        logger.warning(
            "groups and transactional ids are kept in other partitions than by Apache Kafka, as by ixion 0.1; %s",
            "docs/cluster.md says how a cluster is moved over"
            if parts.engine is None
            else "they are moved at the next start with every log directory",
        )
    return known


async def _move_over(parts: Parts, logs: Mapping[str, Mapping[int, Log]], version: int | None) -> Placement:
    if logs:
        version = await _write(parts, Placement.MOVING, version)
        if await _others(parts):
            raise StartupError("another broker started while this one was about to move groups; start one at a time")
        from ixion.broker.coordinators.moving_over import move_over

        offsets, transactions = logs.get(GROUP_OFFSETS, {}), logs.get(TRANSACTION_STATE, {})
        try:
            await parts.loop.run_in_executor(parts.scheduler.workers, move_over, offsets, transactions)
        except KafkaError as error:
            raise StartupError(f"groups cannot be moved to the partitions where they belong: {error}") from error
    await _write(parts, Placement.KAFKA, version)
    return Placement.KAFKA


async def _read(parts: Parts) -> Node | None:
    try:
        return await parts.session.get(paths.PLACEMENT)
    except NoNodeError:
        return None


async def _write(parts: Parts, placement: Placement, version: int | None) -> int:
    """NodeExistsError or BadVersionError if another broker was first. Returns the new version."""
    if version is None:
        await parts.session.create(paths.PLACEMENT, encode_placement(placement))
        return 0
    return (await parts.session.set(paths.PLACEMENT, encode_placement(placement), version)).version


async def _internal_topics(parts: Parts) -> dict[str, TopicNode]:
    found: dict[str, TopicNode] = {}
    for name in MOVED:
        try:
            found[name] = decode_topic(name, (await parts.session.get(paths.topic(name))).data)
        except NoNodeError:
            continue
    return found


def _own_logs(parts: Parts, topics: Mapping[str, TopicNode]) -> dict[str, dict[int, Log]] | None:
    """The logs of these topics; None if this broker does not have all of them, as the only replica."""
    found: dict[str, dict[int, Log]] = {}
    for name, topic in topics.items():
        logs = {number: parts.logs.get(name, number) for number in topic.partitions}
        if any(replicas.all != (parts.node_id,) for replicas in topic.partitions.values()):
            return None
        found[name] = {number: log for number, log in logs.items() if log is not None}
        if len(found[name]) < len(logs):
            return None
    return found


async def _others(parts: Parts) -> bool:
    """Whether other brokers are registered."""
    return any(each != str(parts.node_id) for each in await parts.session.children(paths.BROKERS))


async def _is_from_older_ixion(parts: Parts) -> bool:
    """Whether a version without `/ixion_placement` serves this cluster, or has served these log directories."""
    if parts.kept is not None and parts.kept.were_ours:
        return True
    for each in await parts.session.children(paths.BROKERS):
        try:
            registration = decode_registration(int(each), (await parts.session.get(paths.broker(int(each)))).data)
        except (NoNodeError, CorruptNodeError):
            continue  # it has just left, or is not ours
        if registration.kept_since is not None:
            return True
    return False
