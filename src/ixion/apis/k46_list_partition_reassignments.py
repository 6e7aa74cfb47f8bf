"""ListPartitionReassignments, 0: the moves of replicas that are under way (KIP-455). With one broker there are none;
what the tree says of moves that another broker began is told all the same.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import sliced
from ixion.model.errors import ErrorCode
from ixion.model.topic_partition import TopicPartition
from ixion.protocol.messages.k46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from ixion.timer.turns import Steps


def make(services: Services) -> Handle:
    image = services.image

    def handle(call: Call) -> Steps[ListPartitionReassignmentsResponse]:
        request = cast(ListPartitionReassignmentsRequest, call.body)
        wanted: set[TopicPartition] | None = None if request.topics is None else set()
        for topic in request.topics or ():
            assert wanted is not None
            for number in topic.partition_indexes:
                wanted.add((topic.name, number))
                yield
            yield
        moving = []
        for described in list(image.topics.values()):
            yield
            partitions = tuple(
                OngoingPartitionReassignment(
                    partition_index=each.number,
                    replicas=each.replicas,
                    adding_replicas=each.adding,
                    removing_replicas=each.removing,
                )
                for each in described.partitions
                if (each.adding or each.removing) and (wanted is None or (described.name, each.number) in wanted)
            )
            if partitions:
                moving.append(OngoingTopicReassignment(name=described.name, partitions=partitions))
        return ListPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=tuple(moving)
        )

    return sliced(handle)
