"""AlterPartitionReassignments, 0 to 1: replicas move to other brokers, or a move is called off (KIP-455).

With one broker there is nowhere to move: the replicas that a partition has already are taken and change nothing, others
are refused as replicas on brokers that are not there. Nothing is ever under way, so nothing can be called off. Version
1 can forbid a change of the replication factor (KIP-860).
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.metadata.image import ClusterImage
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ixion.timer.turns import Steps


def make(services: Services) -> Handle:
    image = services.image

    def handle(call: Call) -> Steps[AlterPartitionReassignmentsResponse]:
        request = cast(AlterPartitionReassignmentsRequest, call.body)
        topics = []
        for topic in request.topics:
            results = []
            for wish in topic.partitions:
                code, message = ErrorCode.NONE, None
                try:
                    replicas = None if wish.replicas is None else tuple(wish.replicas)
                    check(image, topic.name, wish.partition_index, replicas, request.allow_replication_factor_change)
                except KafkaError as error:
                    code, message = error.code, error.message
                results.append(
                    ReassignablePartitionResponse(
                        partition_index=wish.partition_index, error_code=code, error_message=message
                    )
                )
                yield
            topics.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(results)))
        return AlterPartitionReassignmentsResponse(
            throttle_time_ms=0,
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=ErrorCode.NONE,
            error_message=None,
            responses=tuple(topics),
        )

    return sliced(handle)


def check(image: ClusterImage, topic: str, number: int, replicas: tuple[int, ...] | None, any_factor: bool) -> None:
    partition = image.partition(topic, number)
    if partition is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{number}")
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
