"""ListPartitionReassignments, 0: the running reassignments of replicas (KIP-455), from the controller. A single broker
has none, unless another broker left some in the tree.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.topic_partition import TopicPartition
from ixion.protocol.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ixion.timer.turns import Steps


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

    return sliced(handle)
