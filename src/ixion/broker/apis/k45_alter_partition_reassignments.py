"""AlterPartitionReassignments, 0 to 1: move replicas to other brokers, or cancel such a move (KIP-455).

The response is sent when the moves have begun; ListPartitionReassignments lists the running ones. Version 1 can forbid
a change of the replication factor (KIP-860).
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import ALTER
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import in_time
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster, refused_topics
from ixion.broker.apis.repeats import once, twice
from ixion.broker.apis.services import Services
from ixion.broker.controller.reassignments import Target
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, in_turns

REPEATS: Final = {
    "topics": once("name", partitions=once("partition_index", replicas=twice())),
}


def make(services: Services) -> Handle:
    controller = services.controller
    timer = services.timer

    async def handle(call: Call) -> AlterPartitionReassignmentsResponse:
        request = cast(AlterPartitionReassignmentsRequest, call.body)
        targets = await in_turns(targets_of(request))
        code, message = ErrorCode.NONE, None
        outcomes: dict[TopicPartition, KafkaError | None] = {}
        try:
            work = controller.reassignments.alter(targets, request.allow_replication_factor_change)
            outcomes = await in_time(timer, request.timeout_ms, work)
        except KafkaError as error:
            code, message = error.code, error.message
        topics = await in_turns(results_of(request, outcomes)) if code == ErrorCode.NONE else ()
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=request.allow_replication_factor_change,
            error_code=code,
            error_message=message,
            responses=topics,
        )

    return handle


def targets_of(request: AlterPartitionReassignmentsRequest) -> Steps[dict[TopicPartition, Target]]:
    targets: dict[TopicPartition, Target] = {}
    for topic in request.topics:
        for wish in topic.partitions:
            targets[topic.name, wish.partition_index] = None if wish.replicas is None else tuple(wish.replicas)
            yield
    return targets


def results_of(
    request: AlterPartitionReassignmentsRequest, outcomes: dict[TopicPartition, KafkaError | None]
) -> Steps[tuple[ReassignableTopicResponse, ...]]:
    topics = []
    for topic in request.topics:
        results = []
        for wish in topic.partitions:
            error = outcomes[topic.name, wish.partition_index]
            results.append(
                ReassignablePartitionResponse(
                    partition_index=wish.partition_index,
                    error_code=ErrorCode.NONE if error is None else error.code,
                    error_message=None if error is None else error.message,
                )
            )
            yield
        topics.append(ReassignableTopicResponse(name=topic.name, partitions=tuple(results)))
    return tuple(topics)


def _refused_reassignments(request: AlterPartitionReassignmentsRequest, _version: int) -> Steps[Struct]:
    topics = yield from refused_topics(
        request.topics,
        lambda each: ReassignablePartitionResponse(
            partition_index=each.partition_index, error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation
        ),
        lambda topic, lines: ReassignableTopicResponse(name=topic.name, partitions=lines),
    )
    return AlterPartitionReassignmentsResponse(
        error_code=NO_CLUSTER,
        error_message=NO_CLUSTER.explanation,
        responses=cast(tuple[ReassignableTopicResponse, ...], tuple(topics)),
    )


RIGHTS: Final = in_cluster(ALTER, _refused_reassignments)
