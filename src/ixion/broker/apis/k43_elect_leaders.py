"""ElectLeaders, 0 to 2: elect the preferred replica (type 0); or, for a partition without a leader, any live replica
(type 1, an unclean election, from version 1 on, KIP-460), which may lose records.

Null means all partitions; then those that need no election are left out of the response. It is sent when this broker's
cluster image shows the elected leaders (`DelayedElectLeader`), or after the timeout.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from ixion.broker.acl.numbers import ALTER
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle, Outcome
from ixion.broker.apis.controller_calls import in_time
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster, refused_topics
from ixion.broker.apis.repeats import NUMBERS, once
from ixion.broker.apis.services import Services
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.delayed_elect_leader import DelayedElectLeader
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER
from ixion.timer.turns import Pauses, Steps, in_turns

REPEATS: Final = {"topic_partitions": once("topic", partitions=NUMBERS)}

PREFERRED: Final = 0
UNCLEAN: Final = 1


def make(services: Services) -> Handle:
    controller = services.controller
    image = services.image
    purgatory = services.replicas.elect_leader_purgatory
    timer = services.timer

    def leader_of(topic: str, number: int) -> int:
        partition = image.partition(topic, number)
        return -1 if partition is None else partition.leader

    async def handle(call: Call) -> Outcome:
        request = cast(ElectLeadersRequest, call.body)
        everywhere = request.topic_partitions is None
        keys = await in_turns(keys_of(request, image))
        if request.election_type not in (PREFERRED, UNCLEAN):
            return await in_turns(refusal(keys, ErrorCode.INVALID_REQUEST, call.version))
        try:
            elections = controller.leaders.elect(keys, request.election_type == UNCLEAN)
            codes = await in_time(timer, request.timeout_ms, elections)
        except KafkaError as error:
            return await in_turns(refusal(keys, error.code, call.version))
        expected = {}
        pauses = Pauses()
        for key, code in codes.items():
            partition = image.partition(*key)
            if code == ErrorCode.NONE and partition is not None:
                expected[key] = partition.preferred if request.election_type == PREFERRED else partition.leader
            await pauses.pause()

        def respond(late: frozenset[TopicPartition]) -> None:
            respond_in_turns(call, answer(codes, everywhere, late))

        operation = DelayedElectLeader(request.timeout_ms, expected, leader_of, respond)
        if expected:
            purgatory.try_complete_else_watch(operation, list(expected))
        else:
            operation.force_complete()
        return LATER

    return handle


def keys_of(request: ElectLeadersRequest, image: ClusterImage) -> Steps[list[TopicPartition]]:
    if request.topic_partitions is None:
        return [(topic.name, each.number) for topic in image.topics.values() for each in topic.partitions]
    keys: dict[TopicPartition, None] = {}
    for topic in request.topic_partitions:
        for number in topic.partitions:
            keys[topic.topic, number] = None
            yield
        yield
    return list(keys)


def answer(
    codes: Mapping[TopicPartition, ErrorCode],
    everywhere: bool,
    late: frozenset[TopicPartition] = frozenset(),
    whole: ErrorCode = ErrorCode.NONE,
) -> Steps[ElectLeadersResponse]:
    topics: dict[str, list[PartitionResult]] = {}
    for key, outcome in codes.items():
        yield
        topic, number = key
        code = ErrorCode.REQUEST_TIMED_OUT if key in late else outcome
        if everywhere and code == ErrorCode.ELECTION_NOT_NEEDED:
            continue
        message = None if code == ErrorCode.NONE else code.explanation
        topics.setdefault(topic, []).append(
            PartitionResult(partition_id=number, error_code=code, error_message=message)
        )
    results: list[ReplicaElectionResult] = []
    for topic, of_topic in topics.items():
        results.append(ReplicaElectionResult(topic=topic, partition_result=tuple(of_topic)))
        yield
    return ElectLeadersResponse(error_code=whole, replica_election_results=tuple(results))


def refusal(keys: list[TopicPartition], code: ErrorCode, version: int) -> Steps[ElectLeadersResponse]:
    """Version 0 has no error for the whole response, so each partition gets the code."""
    return answer(dict.fromkeys(keys, code), False, whole=code if version >= 1 else ErrorCode.NONE)


def _refused_elections(request: ElectLeadersRequest, version: int) -> Steps[Struct]:
    topics = yield from refused_topics(
        request.topic_partitions or (),
        lambda number: PartitionResult(
            partition_id=number, error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation
        ),
        lambda topic, lines: ReplicaElectionResult(topic=topic.topic, partition_result=lines),
    )
    return ElectLeadersResponse(
        error_code=NO_CLUSTER if version >= 1 else ErrorCode.NONE,
        replica_election_results=cast(tuple[ReplicaElectionResult, ...], tuple(topics)),
    )


RIGHTS: Final = in_cluster(ALTER, _refused_elections)
