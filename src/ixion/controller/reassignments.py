"""Moves of replicas on a broker alone: there is nowhere to move to.

The replicas that a partition has already are taken and change nothing, others are refused as replicas on brokers that
are not there. Nothing is ever under way, so nothing can be called off.
"""

from __future__ import annotations

from collections.abc import Mapping

from ixion.metadata.image import ClusterImage
from ixion.metadata.topic_node import Replicas
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.topic_partition import TopicPartition
from ixion.timer.turns import Pauses, Steps

Target = tuple[int, ...] | None  # None: call the move off
Moving = list[tuple[TopicPartition, Replicas]]


class Reassignments:
    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    async def alter(
        self, targets: Mapping[TopicPartition, Target], any_factor: bool
    ) -> dict[TopicPartition, KafkaError | None]:
        """What is wrong with each, or None."""
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
        """Moves that another broker began, as the tree has them."""
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
            f"the partition has {len(partition.replicas)} replicas, and {len(replicas)} would change that",
        )
    unknown = [broker for broker in replicas if broker not in image.brokers]
    if not replicas or unknown or len(set(replicas)) < len(replicas) or replicas != partition.replicas:
        why = f"there is no broker {unknown[0]}" if unknown else f"it is {list(partition.replicas)}, and stays there"
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{list(replicas)} cannot be taken: {why}")
