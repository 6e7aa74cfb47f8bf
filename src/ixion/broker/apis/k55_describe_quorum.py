"""DescribeQuorum, 0 to 2: the voters of the metadata quorum. We report the controller as the leader and only voter.

Kafka's controllers replicate a log, `__cluster_metadata`; our metadata is a tree. As the end of the log we report the
number of changes in this broker's cluster image. Version 1 brought times, 2 the controllers' addresses (KIP-853), which
are those of the broker that is the controller.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import DESCRIBE
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from ixion.timer.turns import Steps

REPEATS: Final = {"topics": once("topic_name", partitions=once("partition_index"))}
RIGHTS: Final = refused_with(
    DESCRIBE, DescribeQuorumResponse(error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation, topics=(), nodes=())
)

CLUSTER_METADATA: Final = "__cluster_metadata"


def make(services: Services) -> Handle:
    image = services.image
    clock_ms = services.clock_ms

    def describe(topic: str, number: int) -> ResponsePartitionData:
        if topic != CLUSTER_METADATA or number != 0:
            return ResponsePartitionData(
                partition_index=number,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                error_message=f"only partition 0 of {CLUSTER_METADATA} has a quorum",
                leader_id=-1,
                leader_epoch=-1,
                high_watermark=-1,
                current_voters=(),
                observers=(),
            )
        now_ms = clock_ms()
        voter = ReplicaState(
            replica_id=image.controller_id,
            replica_directory_id=ZERO_ID,
            log_end_offset=image.version,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )
        return ResponsePartitionData(
            partition_index=0,
            error_code=ErrorCode.NONE,
            error_message="",
            leader_id=image.controller_id,
            leader_epoch=image.controller_epoch,
            high_watermark=image.version,
            current_voters=(voter,),
            observers=(),
        )

    def handle(call: Call) -> Steps[DescribeQuorumResponse]:
        request = cast(DescribeQuorumRequest, call.body)
        controller = image.brokers.get(image.controller_id)
        topics = []
        for topic in request.topics:
            described = []
            for each in topic.partitions:
                described.append(describe(topic.topic_name, each.partition_index))
                yield
            topics.append(ResponseTopicData(topic_name=topic.topic_name, partitions=tuple(described)))
        return DescribeQuorumResponse(
            error_code=ErrorCode.NONE,
            error_message="",
            topics=tuple(topics),
            nodes=()
            if controller is None or call.version < 2
            else (
                Node(
                    node_id=controller.broker_id,
                    listeners=tuple(
                        Listener(name=name, host=host, port=port) for name, (host, port) in controller.endpoints.items()
                    ),
                ),
            ),
        )

    return handle
