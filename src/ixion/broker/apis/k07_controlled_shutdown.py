"""ControlledShutdown, 0 to 3: a broker that is about to stop asks the controller to elect other leaders.

The response lists the partitions that it still leads, because no other replica can lead them now. Version 2 brought the
broker epoch (KIP-380). Only brokers send it.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import CLUSTER_ACTION
from ixion.broker.apis.between_brokers import BetweenBrokers
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import translated
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.services import Services
from ixion.broker.controller.cluster.controller import ClusterController
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k07_controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

RIGHTS: Final = refused_with(CLUSTER_ACTION, ControlledShutdownResponse(error_code=NO_CLUSTER, remaining_partitions=()))


def make(services: Services) -> Handle:
    controller = services.controller
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> ControlledShutdownResponse:
        request = cast(ControlledShutdownRequest, call.body)
        if not brokers.admits(call, "ControlledShutdown"):
            return answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
        assert isinstance(controller, ClusterController)  # only such a controller has other brokers
        try:
            left = await translated(controller.leaders.shut_down(request.broker_id, request.broker_epoch))
        except KafkaError as error:
            return answer(error.code, [])
        return answer(ErrorCode.NONE, left)

    return handle


def answer(code: ErrorCode, left: list[TopicPartition]) -> ControlledShutdownResponse:
    remaining = [RemainingPartition(topic_name=name, partition_index=number) for name, number in left]
    return ControlledShutdownResponse(error_code=code, remaining_partitions=tuple(remaining))
