"""AlterPartition, 2 to 3: a leader asks the controller to change the ISR (KIP-497).

Version 3 has the broker epochs with which the replicas fetched (KIP-903). The controller refuses a replica whose broker
has registered again since, because it may have lost its disk. Apache Kafka's leaders send -1, which is accepted.
Only brokers send it.
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
from ixion.protocol.messages.k56_alter_partition import AlterPartitionRequest, AlterPartitionResponse


def make(services: Services) -> Handle:
    controller = services.controller
    brokers = BetweenBrokers(services)

    async def handle(call: Call) -> AlterPartitionResponse:
        request = cast(AlterPartitionRequest, call.body)
        if not brokers.admits(call, "AlterPartition"):
            return refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert isinstance(controller, ClusterController)  # only such a controller has other brokers
        try:
            return await translated(controller.isr.alter(request))
        except KafkaError as error:
            return refusal(error.code)

    return in_own_task(handle)


def refusal(code: ErrorCode) -> AlterPartitionResponse:
    return AlterPartitionResponse(error_code=code, topics=())
