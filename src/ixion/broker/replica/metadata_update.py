"""Applies an UpdateMetadata request to the cluster image.

Each request names all live brokers, and the partitions that have changed. A partition with leader -2 was deleted with
its topic. Partitions without a leader are not named, so numbers may have gaps. The image has a list without gaps: there
such a partition has no replicas and no leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ixion.broker.metadata.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.language.protocol.messages.k06_update_metadata import (
        UpdateMetadataBroker,
        UpdateMetadataPartitionState,
        UpdateMetadataRequest,
        UpdateMetadataTopicState,
    )

DELETED: Final = -2  # in place of a leader
NO_ID: Final = bytes(16)
MOST_PARTITIONS: Final = 200_000  # of one topic; its list has an entry for each number up to the largest


def topics_of(request: UpdateMetadataRequest) -> tuple[UpdateMetadataTopicState, ...]:
    """Versions before 5 name the topic with each partition."""
    if not request.ungrouped_partition_states:
        return request.topic_states
    from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataTopicState

    grouped: dict[str, list[UpdateMetadataPartitionState]] = {}
    for state in request.ungrouped_partition_states:
        grouped.setdefault(state.topic_name, []).append(state)
    return tuple(
        UpdateMetadataTopicState(topic_name=name, partition_states=tuple(states)) for name, states in grouped.items()
    )


def unknown_topics(image: ClusterImage, topics: tuple[UpdateMetadataTopicState, ...]) -> list[str]:
    """Topics that are new to the image, whose settings must be read."""
    return [
        topic.topic_name
        for topic in topics
        if not is_deleted(topic) and known_topic(image, topic.topic_name, topic.topic_id) is None
    ]


def known_topic(image: ClusterImage, name: str, topic_id: bytes) -> TopicImage | None:
    """The topic; None if the image only has an earlier one of that name."""
    known = image.topics.get(name)
    return known if known is not None and topic_id in (known.topic_id, NO_ID) else None


def is_deleted(topic: UpdateMetadataTopicState) -> bool:
    return any(state.leader == DELETED for state in topic.partition_states)


def take_brokers(image: ClusterImage, own: BrokerImage, brokers: tuple[UpdateMetadataBroker, ...]) -> None:
    """Set the live brokers. This broker keeps its own entry, with which it registered."""
    image.brokers = {broker.id: own if broker.id == own.broker_id else broker_image(broker) for broker in brokers}
    image.brokers.setdefault(own.broker_id, own)
    image.version += 1


def broker_image(broker: UpdateMetadataBroker) -> BrokerImage:
    return BrokerImage(
        broker_id=broker.id,
        epoch=-1,  # the request does not name the epochs of other brokers
        endpoints={endpoint.listener: (endpoint.host, endpoint.port) for endpoint in broker.endpoints},
        rack=broker.rack,
    )


def take_topics(
    image: ClusterImage, topics: tuple[UpdateMetadataTopicState, ...], configs: Mapping[str, dict[str, str]]
) -> Steps[list[str]]:
    """Apply changed topics, and return the names of deleted ones. `configs` has the settings of new topics, which may
    change meanwhile."""
    deleted = []
    for topic in topics:
        name = topic.topic_name
        if is_deleted(topic):
            if image.remove_topic(name) is not None:
                deleted.append(name)
            continue
        known = known_topic(image, name, topic.topic_id)
        if known is None:
            if image.remove_topic(name) is not None:
                deleted.append(name)  # and created again under the same name
            known = TopicImage(name=name, topic_id=topic.topic_id, partitions=[], config={})
            yield from take_partitions(known, topic)
            known.config = configs[name]
            image.put_topic(known)
        else:
            yield from take_partitions(known, topic)
            image.version += 1
        yield
    return deleted


def take_partitions(topic: TopicImage, update: UpdateMetadataTopicState) -> Steps[None]:
    partitions = topic.partitions
    for state in update.partition_states:
        number = state.partition_index
        if not 0 <= number < MOST_PARTITIONS:
            raise ValueError(f"{topic.name} cannot have a partition {number}")
        while len(partitions) <= number:
            partitions.append(PartitionImage(number=len(partitions), leader=-1, leader_epoch=-1, isr=(), replicas=()))
        partitions[number] = PartitionImage(
            number=number,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            isr=state.isr,
            replicas=state.replicas,
            offline=state.offline_replicas,
            partition_epoch=state.zk_version,
        )
        yield
