"""ControlledShutdown, 0 to 3: a broker that wants to stop asks the controller to move its leaders away.

The answer names the partitions that it still leads: no other replica can lead them now. Version 2 brought the broker
epoch (KIP-380). Only brokers send it.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.between_brokers import BetweenBrokers
from ixion.apis.call import Call, Handle
from ixion.apis.controller_calls import translated
from ixion.apis.own_task import in_own_task
from ixion.apis.services import Services
from ixion.controller.cluster.controller import ClusterController
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.topic_partition import TopicPartition
from ixion.protocol.messages.k07_controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)


def make(services: Services) -> Handle:
    controller = services.controller
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> ControlledShutdownResponse:
        request = cast(ControlledShutdownRequest, call.body)
        if not brokers.admits(call, "ControlledShutdown"):
            return answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
        assert isinstance(controller, ClusterController)  # there are brokers only where it is one
        try:
            left = await translated(controller.leaders.shut_down(request.broker_id, request.broker_epoch))
        except KafkaError as error:
            return answer(error.code, [])
        return answer(ErrorCode.NONE, left)

    return in_own_task(handle)


def answer(code: ErrorCode, left: list[TopicPartition]) -> ControlledShutdownResponse:
    remaining = [RemainingPartition(topic_name=name, partition_index=number) for name, number in left]
    return ControlledShutdownResponse(error_code=code, remaining_partitions=tuple(remaining))
