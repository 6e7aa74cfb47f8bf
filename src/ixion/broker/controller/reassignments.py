"""Moves of replicas on a broker that is alone: there is no other broker to move to.

The present replicas of a partition are accepted and change nothing; others are refused, because their brokers do not
exist. No move is ever running, so none can be cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping

from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.topic_node import Replicas
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Pauses, Steps

Target = tuple[int, ...] | None  # None: cancel the move
Moving = list[tuple[TopicPartition, Replicas]]


class Reassignments:
    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    async def alter(
        self, targets: Mapping[TopicPartition, Target], any_factor: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """Returns an error for each, or None."""
        outcomes: dict[TopicPartition, KafkaError | None] = {}
        pauses = Pauses()
        for key, target in targets.items():
            try:
                check(self._image, key, target, any_factor)
                outcomes[key] = None
            except KafkaError as error:
                outcomes[key] = error
            await pauses.pause()
        return outcomes

    def moving(self) -> Steps[Moving]:
        """Running moves in the tree, begun by another broker."""
        found: Moving = []
        for topic in list(self._image.topics.values()):
            yield
            for each in topic.partitions:
                if each.adding or each.removing:
                    replicas = Replicas(all=each.replicas, adding=each.adding, removing=each.removing)
                    found.append(((topic.name, each.number), replicas))
        return found


def check(image: ClusterImage, key: TopicPartition, replicas: Target, any_factor: bool) -> None:
    partition = image.partition(*key)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {key[0]}-{key[1]}")
    if replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    if not any_factor and len(replicas) != len(partition.replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"the partition has {len(partition.replicas)} replicas; {len(replicas)} would change the factor",
        )
    unknown = [broker for broker in replicas if broker not in image.brokers]
    if not replicas or unknown or len(set(replicas)) < len(replicas) or replicas != partition.replicas:
        why = f"there is no broker {unknown[0]}" if unknown else f"it is {list(partition.replicas)}, and stays there"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{list(replicas)} cannot be taken: {why}")
