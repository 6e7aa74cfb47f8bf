"""AllocateProducerIds, 0: a broker asks the controller for a block of producer ids (KIP-730). Only brokers send it."""

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
from ixion.language.protocol.messages.k67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

RIGHTS: Final = refused_with(
    CLUSTER_ACTION,
    AllocateProducerIdsResponse(error_code=NO_CLUSTER, producer_id_start=0, producer_id_len=0),
)


def make(services: Services) -> Handle:
    controller = services.controller
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> AllocateProducerIdsResponse:
        request = cast(AllocateProducerIdsRequest, call.body)
        if not brokers.admits(call, "AllocateProducerIds"):
            return answer(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert isinstance(controller, ClusterController)  # only such a controller has other brokers
        try:
            block = await translated(controller.producer_ids.allocate(request.broker_id, request.broker_epoch))
        except KafkaError as error:
            return answer(error.code)
        return answer(ErrorCode.NONE, block.first, block.last - block.first + 1)

    return handle


def answer(code: ErrorCode, first: int = 0, count: int = 0) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=code, producer_id_start=first, producer_id_len=count)
