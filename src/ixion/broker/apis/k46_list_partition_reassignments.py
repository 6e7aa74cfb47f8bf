"""ListPartitionReassignments, 0: the running reassignments of replicas (KIP-455), from the controller. A single broker
has none, unless another broker left some in the tree.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import DESCRIBE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster, refused_topics
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps

REPEATS: Final = {"topics": once("name", partition_indexes=NUMBERS)}


def make(services: Services) -> Handle:
    controller = services.controller

    def handle(call: Call) -> Steps[ListPartitionReassignmentsResponse]:
        request = cast(ListPartitionReassignmentsRequest, call.body)
        wanted: set[TopicPartition] | None = None if request.topics is None else set()
        for topic in request.topics or ():
            assert wanted is not None
            for number in topic.partition_indexes:
                wanted.add((topic.name, number))
                yield
            yield
        moving: dict[str, list[OngoingPartitionReassignment]] = {}
        try:
            found = yield from controller.reassignments.moving()
        except KafkaError as error:
            return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message, topics=())
        for (name, number), replicas in found:
            yield
            if wanted is None or (name, number) in wanted:
                moving.setdefault(name, []).append(
                    OngoingPartitionReassignment(
                        partition_index=number,
                        replicas=replicas.all,
                        adding_replicas=replicas.adding,
                        removing_replicas=replicas.removing,
                    )
                )
        topics = [
            OngoingTopicReassignment(name=name, partitions=tuple(partitions)) for name, partitions in moving.items()
        ]
        return ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, error_message=None, topics=tuple(topics))

    return handle


def _refused_listing(request: ListPartitionReassignmentsRequest, _version: int) -> Steps[Struct]:
    """As in Kafka, the response lists the requested partitions without any details."""
    topics = yield from refused_topics(
        request.topics or (),
        lambda number: OngoingPartitionReassignment(
            partition_index=number, replicas=(), adding_replicas=(), removing_replicas=()
        ),
        lambda topic, lines: OngoingTopicReassignment(name=topic.name, partitions=lines),
        "partition_indexes",
    )
    return ListPartitionReassignmentsResponse(
        error_code=NO_CLUSTER,
        error_message=NO_CLUSTER.explanation,
        topics=cast(tuple[OngoingTopicReassignment, ...], tuple(topics)),
    )


RIGHTS: Final = in_cluster(DESCRIBE, _refused_listing)
